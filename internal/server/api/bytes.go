package api

import (
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/jsonbody"
)

// Bytes is text that need not be UTF-8. In JSON, UTF-8 text is a string. Other text is an
// object with a member base64.
type Bytes string

type packed struct {
	Base64 []byte `json:"base64"`
}

// MarshalJSON returns a string, or an object if a string would lose bytes.
func (b Bytes) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(b)) {
		return Encode(string(b))
	}
	return json.Marshal(packed{Base64: []byte(b)})
}

// UnmarshalJSON accepts either form.
func (b *Bytes) UnmarshalJSON(data []byte) error {
	if len(data) > 0 && data[0] == '{' {
		var p packed
		if err := strict(data, &p); err != nil {
			return fmt.Errorf("text: %w: %w", err, paddock.Invalid)
		}
		*b = Bytes(p.Base64)
		return nil
	}
	var s string
	if err := json.Unmarshal(data, &s); err != nil {
		return fmt.Errorf("text: %w: %w", jsonbody.Explain(err), paddock.Invalid)
	}
	*b = Bytes(s)
	return nil
}

// Pack converts strings to Bytes.
func Pack(list []string) []Bytes {
	out := make([]Bytes, len(list))
	for i, s := range list {
		out[i] = Bytes(s)
	}
	return out
}

// Unpack converts Bytes to strings.
func Unpack(list []Bytes) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = string(b)
	}
	return out
}
