package agentlogin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// documentMax is the longest file of an agent that is read.
const documentMax = 1 << 20

// errDocument does not quote the file, which holds tokens.
var errDocument = errors.New("it is not a JSON object as its agent writes it")

// A document is a file of an agent. What it is not asked about stays as it is.
type document struct {
	raw    json.RawMessage
	indent bool
}

func parseDocument(data []byte) (document, error) {
	var top map[string]json.RawMessage
	if err := json.Unmarshal(data, &top); err != nil || top == nil {
		return document{}, errDocument
	}
	return document{raw: data, indent: bytes.ContainsRune(bytes.TrimSpace(data), '\n')}, nil
}

// value returns what is at a path, if something is.
func (d document) value(at string) (json.RawMessage, bool) {
	raw := d.raw
	for key := range strings.SplitSeq(at, ".") {
		var m map[string]json.RawMessage
		if at == "" || json.Unmarshal(raw, &m) != nil {
			return nil, false
		}
		var ok bool
		if raw, ok = m[key]; !ok {
			return nil, false
		}
	}
	return raw, true
}

// text returns the text at a path, or nothing.
func (d document) text(at string) string {
	var s string
	if raw, ok := d.value(at); !ok || json.Unmarshal(raw, &s) != nil {
		return ""
	}
	return s
}

// set puts a value at a path, and makes the objects above it.
func (d *document) set(at string, v any) error {
	value, err := marshal(v, false)
	if err != nil {
		return err
	}
	raw, err := put(d.raw, strings.Split(at, "."), value)
	if err != nil {
		return err
	}
	d.raw = raw
	return nil
}

func put(raw json.RawMessage, keys []string, value json.RawMessage) (json.RawMessage, error) {
	if len(keys) == 0 {
		return value, nil
	}
	m := map[string]json.RawMessage{}
	if raw != nil {
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, errDocument
		}
	}
	if m == nil {
		m = map[string]json.RawMessage{} // it was null
	}
	below, err := put(m[keys[0]], keys[1:], value)
	if err != nil {
		return nil, err
	}
	m[keys[0]] = below
	return marshal(m, false)
}

// bytes returns the content of the file.
func (d document) bytes() ([]byte, error) { return marshal(d.raw, d.indent) }

func marshal(v any, indent bool) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if indent {
		e.SetIndent("", "  ")
	}
	if err := e.Encode(v); err != nil {
		return nil, fmt.Errorf("write JSON: %w", err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// Tokens are the real tokens of a login.
type tokens struct {
	access, refresh, id string
	expires             time.Time // of the access token; zero if it is not known
	scope               string
}

// tokens reads the tokens of a section. Without an access token there is no login.
func (d document) tokens(s Section) (t tokens, ok bool) {
	t = tokens{access: d.text(s.Access), refresh: d.text(s.Refresh), id: d.text(s.ID), scope: d.scope(s.Scopes)}
	if !isToken(t.access) || t.refresh != "" && !isToken(t.refresh) || s.Refresh != "" && t.refresh == "" {
		return tokens{}, false
	}
	var unix float64
	if raw, ok := d.value(s.Expires.At); ok && json.Unmarshal(raw, &unix) == nil && unix > 0 && unix < 1e15 {
		if s.Expires.Unit == "s" {
			unix *= 1000
		}
		t.expires = time.UnixMilli(int64(unix))
	}
	if t.expires.IsZero() {
		t.expires = jwtExpiry(t.access)
	}
	return t, true
}

// scope returns the scopes as one text.
func (d document) scope(at string) string {
	raw, ok := d.value(at)
	var list []string
	if ok && json.Unmarshal(raw, &list) == nil {
		return strings.Join(list, " ")
	}
	return d.text(at)
}

// store puts fresh tokens into the file as the agent would.
func (d *document) store(s Section, t tokens, now time.Time) error {
	values := []struct {
		at string
		v  any
		on bool
	}{
		{s.Access, t.access, true},
		{s.Refresh, t.refresh, s.Refresh != "" && t.refresh != ""},
		{s.ID, t.id, s.ID != "" && t.id != ""},
		{s.Refreshed, now.UTC().Format(time.RFC3339Nano), s.Refreshed != ""},
		{s.Expires.At, unixOf(t.expires, s.Expires.Unit), s.Expires.At != "" && !t.expires.IsZero()},
	}
	for _, v := range values {
		if !v.on {
			continue
		}
		if err := d.set(v.at, v.v); err != nil {
			return err
		}
	}
	return nil
}

func unixOf(t time.Time, unit string) int64 {
	if unit == "s" {
		return t.Unix()
	}
	return t.UnixMilli()
}
