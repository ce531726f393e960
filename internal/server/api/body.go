package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/paddock-sandbox/paddock"
)

// Decode reads one JSON value of at most limit bytes, and nothing behind it.
// A field that is not known is an error: whoever sends it believes that it does
// something.
func Decode(r io.Reader, limit int64, v any) error {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return fmt.Errorf("read the body: %w", err)
	}
	if int64(len(data)) > limit {
		return fmt.Errorf("the body is larger than %d bytes: %w", limit, paddock.Exhausted)
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
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the JSON value")
	}
	return nil
}

// DecodeAnswer reads one JSON value of at most limit bytes. Fields that are not
// known are passed over: a newer server may say more.
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
