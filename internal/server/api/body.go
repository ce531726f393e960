package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/jsonbody"
)

// Decode decodes exactly one JSON value of at most limit bytes. An unknown field is an
// error, because its sender expects an effect. Before it decodes, it calls hold with the memory
// that the value will take beside its text; hold may be nil.
func Decode(r io.Reader, limit int64, v any, hold func(n int64) error) error {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return fmt.Errorf("read the body: %w", err)
	}
	if int64(len(data)) > limit {
		return fmt.Errorf("the body is larger than %d bytes: %w", limit, paddock.Exhausted)
	}
	if hold != nil {
		if err := hold(jsonbody.Cost(data)); err != nil {
			return err
		}
	}
	if err := strict(data, v); err != nil {
		return fmt.Errorf("the body: %w: %w", err, paddock.Invalid)
	}
	return nil
}

func strict(data []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return jsonbody.Explain(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("unexpected data after the JSON value")
	}
	return nil
}

// DecodeAnswer decodes exactly one JSON value of at most limit bytes. It ignores unknown
// fields, because a newer server may send more.
func DecodeAnswer(r io.Reader, limit int64, v any) error {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return fmt.Errorf("read the answer: %w: %w", err, paddock.Unavailable)
	}
	if int64(len(data)) > limit {
		return fmt.Errorf("the answer is larger than %d bytes: %w", limit, paddock.Exhausted)
	}
	if err := json.Unmarshal(data, v); err != nil {
		return fmt.Errorf("the answer: %w: %w", err, paddock.Internal)
	}
	return nil
}
