// Package head reads the head of an HTTP/1 request as strictly as it can be read,
// so that no two readers of it see two different requests. It is pure.
package head

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/rule"
)

const (
	// Max is the length of the longest head that is read.
	Max = 128 << 10
	// MaxFields is how many fields a head has at most.
	MaxFields = 256
)

// A Field is a line of a head. Name is as it came.
type Field struct{ Name, Value string }

// A Head is a request line and its fields.
type Head struct {
	Method, Target string
	Minor          int // 0 or 1: the version is 1.Minor
	Fields         []Field
}

// A Body is how the length of a message's body is told.
type Body struct {
	Chunked bool
	Length  int64 // where it is not chunked
}

// Parse reads a head, with the empty line that ends it and nothing behind it.
// Whatever a lenient reader would repair is Invalid: lines that end with LF alone,
// folded lines, space around names, control characters, other versions.
func Parse(b []byte) (Head, error) {
	h, err := parse(b)
	if err != nil {
		return Head{}, fmt.Errorf("request head: %w: %w", err, paddock.Invalid)
	}
	return h, nil
}

func parse(b []byte) (Head, error) {
	if len(b) > Max {
		return Head{}, fmt.Errorf("longer than %d bytes", Max)
	}
	text, ok := bytes.CutSuffix(b, []byte("\r\n\r\n"))
	if !ok {
		return Head{}, errors.New("it is not whole")
	}
	lines := strings.Split(string(text), "\r\n")
	if len(lines)-1 > MaxFields {
		return Head{}, fmt.Errorf("more than %d fields", MaxFields)
	}
	h, err := parseLine(lines[0])
	if err != nil {
		return Head{}, err
	}
	h.Fields, err = parseFields(lines[1:])
	return h, err
}

func parseLine(line string) (Head, error) {
	method, rest, _ := strings.Cut(line, " ")
	target, version, _ := strings.Cut(rest, " ")
	h := Head{Method: method, Target: target}
	switch version {
	case "HTTP/1.1":
		h.Minor = 1
	case "HTTP/1.0":
	default:
		return Head{}, errors.New("the request line is not METHOD TARGET HTTP/1.1")
	}
	if !token(method) || len(method) > 64 {
		return Head{}, errors.New("the method is not a word")
	}
	if err := checkTarget(target); err != nil {
		return Head{}, err
	}
	return h, nil
}

// Target checks the target of a request that came in another way than as a head:
// what Parse refuses of one is Invalid.
func Target(target string) error {
	if err := checkTarget(target); err != nil {
		return fmt.Errorf("request: %w: %w", err, paddock.Invalid)
	}
	return nil
}

func checkTarget(target string) error {
	if target == "" {
		return errors.New("the target is empty")
	}
	for i := range len(target) {
		// A fragment never leaves a client; the backslash is a slash to some servers.
		if c := target[i]; c <= ' ' || c >= 0x7f || c == '#' || c == '\\' {
			return fmt.Errorf("the target holds %q", string(rune(c)))
		}
	}
	return nil
}

// Fields reads lines of fields as Parse does, for trailers.
func Fields(lines []string) ([]Field, error) {
	fields, err := parseFields(lines)
	if err != nil {
		return nil, fmt.Errorf("trailer: %w: %w", err, paddock.Invalid)
	}
	return fields, nil
}

func parseFields(lines []string) ([]Field, error) {
	fields := make([]Field, 0, len(lines))
	for _, line := range lines {
		if line != "" && (line[0] == ' ' || line[0] == '\t') {
			return nil, errors.New("a line is folded")
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || !token(name) {
			return nil, errors.New("a field has no name that is a word")
		}
		for i := range len(value) {
			if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
				return nil, fmt.Errorf("the field %s holds a control character", clip(name))
			}
		}
		fields = append(fields, Field{Name: name, Value: strings.Trim(value, " \t")})
	}
	return fields, nil
}

// Values gives the values of a field, in their order; case is as nothing.
func (h Head) Values(name string) []string {
	var values []string
	for _, f := range h.Fields {
		if strings.EqualFold(f.Name, name) {
			values = append(values, f.Value)
		}
	}
	return values
}

// Has tells whether a field's comma-separated values hold word, in any case.
func (h Head) Has(name, word string) bool {
	for _, value := range h.Values(name) {
		for part := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(part), word) {
				return true
			}
		}
	}
	return false
}

// Body tells how long the body is. Two ways to tell it, or one of them twice or
// in a form that only some read, are Invalid.
func (h Head) Body() (Body, error) {
	b, err := h.body()
	if err != nil {
		return Body{}, fmt.Errorf("request head: %w: %w", err, paddock.Invalid)
	}
	return b, nil
}

func (h Head) body() (Body, error) {
	lengths, codings := h.Values("Content-Length"), h.Values("Transfer-Encoding")
	switch {
	case len(lengths) > 0 && len(codings) > 0:
		return Body{}, errors.New("both Content-Length and Transfer-Encoding")
	case len(codings) > 1 || len(lengths) > 1:
		return Body{}, errors.New("the length of the body is told twice")
	case len(codings) == 1:
		if h.Minor == 0 || !strings.EqualFold(codings[0], "chunked") {
			return Body{}, errors.New("a Transfer-Encoding other than chunked, or in HTTP/1.0")
		}
		return Body{Chunked: true}, nil
	case len(lengths) == 1:
		n, err := strconv.ParseUint(lengths[0], 10, 63)
		if err != nil || lengths[0][0] == '+' {
			return Body{}, errors.New("Content-Length is not a number")
		}
		return Body{Length: int64(n)}, nil
	}
	return Body{}, nil
}

// Destination gives the host of the request and its port, zero where none is named. The
// one Host field must be there, and the same as the target's host where the target is a
// URL (its scheme is given then) or CONNECT's. User information is Invalid.
func (h Head) Destination() (scheme string, host rule.Host, port uint16, err error) {
	scheme, host, port, err = h.destination()
	if err != nil {
		return "", rule.Host{}, 0, fmt.Errorf("request head: %w: %w", err, paddock.Invalid)
	}
	return scheme, host, port, nil
}

func (h Head) destination() (scheme string, host rule.Host, port uint16, err error) {
	hosts := h.Values("Host")
	if h.Method == "CONNECT" && len(hosts) == 0 && h.Minor == 0 {
		host, port, err = Authority(h.Target) // Python's way, and it says all
		return "", host, port, err
	}
	if len(hosts) != 1 {
		return "", rule.Host{}, 0, errors.New("not exactly one Host")
	}
	host, port, err = Authority(hosts[0])
	if err != nil {
		return "", rule.Host{}, 0, err
	}
	authority := h.Target
	if h.Method != "CONNECT" {
		if strings.HasPrefix(h.Target, "/") || h.Target == "*" && h.Method == "OPTIONS" {
			return "", host, port, nil
		}
		var ok bool
		scheme, authority, ok = strings.Cut(h.Target, "://")
		if !ok {
			return "", rule.Host{}, 0, errors.New("the target is neither a path nor a URL")
		}
		scheme = strings.ToLower(scheme)
		authority, _, _ = strings.Cut(authority, "/")
		authority, _, _ = strings.Cut(authority, "?")
	}
	targetHost, targetPort, err := Authority(authority)
	if err != nil {
		return "", rule.Host{}, 0, err
	}
	same := portOf(scheme, port) == portOf(scheme, targetPort) || h.Method == "CONNECT" && port == 0
	if targetHost != host || !same {
		return "", rule.Host{}, 0, errors.New("the Host header differs from the target")
	}
	return scheme, host, targetPort, nil
}

// portOf gives the port that is meant where none, zero, may be written.
func portOf(scheme string, port uint16) uint16 {
	switch {
	case port != 0:
	case scheme == "http":
		return 80
	case scheme == "https":
		return 443
	}
	return port
}

// Authority reads "host" or "host:port"; the port is zero where there is none.
func Authority(s string) (rule.Host, uint16, error) {
	name, port, err := rule.SplitPort(s)
	if err != nil {
		return rule.Host{}, 0, err
	}
	// ParseHost takes IPv6 addresses without brackets too; here they would be
	// read in two ways.
	if strings.Contains(name, ":") && !strings.HasPrefix(name, "[") {
		return rule.Host{}, 0, fmt.Errorf("host: an IPv6 address without brackets: %w", paddock.Invalid)
	}
	host, err := rule.ParseHost(name)
	return host, port, err
}

func token(s string) bool {
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		case strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0:
		default:
			return false
		}
	}
	return s != ""
}

func clip(s string) string {
	if len(s) > 40 {
		return s[:40] + "…"
	}
	return s
}
