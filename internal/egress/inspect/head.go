package inspect

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

const (
	// headMax is the length of the longest head that is read.
	headMax = 128 << 10
	// fieldsMax is how many fields a head has at most.
	fieldsMax = 256
)

// A headField is a line of a head. Name is as it came.
type headField struct{ Name, Value string }

// A requestHead is a request line and its fields.
type requestHead struct {
	Method, Target string
	Minor          int // 0 or 1: the version is 1.Minor
	Fields         []headField
}

// A bodyLength is how the length of a message's body is told.
type bodyLength struct {
	Chunked bool
	Length  int64 // where it is not chunked
}

// parseHead reads a head, with the empty line that ends it and nothing behind it.
// Whatever a lenient reader would repair is Invalid: lines that end with LF alone,
// folded lines, space around names, control characters, other versions.
func parseHead(b []byte) (requestHead, error) {
	h, err := readHead(b)
	if err != nil {
		return requestHead{}, fmt.Errorf("request head: %w: %w", err, paddock.Invalid)
	}
	return h, nil
}

func readHead(b []byte) (requestHead, error) {
	if len(b) > headMax {
		return requestHead{}, fmt.Errorf("longer than %d bytes", headMax)
	}
	text, ok := bytes.CutSuffix(b, []byte("\r\n\r\n"))
	if !ok {
		return requestHead{}, errors.New("it is not whole")
	}
	lines := strings.Split(string(text), "\r\n")
	if len(lines)-1 > fieldsMax {
		return requestHead{}, fmt.Errorf("more than %d fields", fieldsMax)
	}
	h, err := readRequestLine(lines[0])
	if err != nil {
		return requestHead{}, err
	}
	h.Fields, err = readFields(lines[1:])
	return h, err
}

func readRequestLine(line string) (requestHead, error) {
	method, rest, _ := strings.Cut(line, " ")
	target, version, _ := strings.Cut(rest, " ")
	h := requestHead{Method: method, Target: target}
	switch version {
	case "HTTP/1.1":
		h.Minor = 1
	case "HTTP/1.0":
	default:
		return requestHead{}, errors.New("the request line is not METHOD TARGET HTTP/1.1")
	}
	if !isToken(method) || len(method) > 64 {
		return requestHead{}, errors.New("the method is not a word")
	}
	if err := checkTarget(target); err != nil {
		return requestHead{}, err
	}
	return h, nil
}

// checkRequestTarget checks the target of a request that came in another way than as a head:
// what Parse refuses of one is Invalid.
func checkRequestTarget(target string) error {
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

// parseTrailer reads lines of fields as Parse does, for trailers.
func parseTrailer(lines []string) ([]headField, error) {
	fields, err := readFields(lines)
	if err != nil {
		return nil, fmt.Errorf("trailer: %w: %w", err, paddock.Invalid)
	}
	return fields, nil
}

func readFields(lines []string) ([]headField, error) {
	fields := make([]headField, 0, len(lines))
	for _, line := range lines {
		if line != "" && (line[0] == ' ' || line[0] == '\t') {
			return nil, errors.New("a line is folded")
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || !isToken(name) {
			return nil, errors.New("a field has no name that is a word")
		}
		for i := range len(value) {
			if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
				return nil, fmt.Errorf("the field %s holds a control character", clip(name))
			}
		}
		fields = append(fields, headField{Name: name, Value: strings.Trim(value, " \t")})
	}
	return fields, nil
}

// Values gives the values of a field, in their order; case is as nothing.
func (h requestHead) Values(name string) []string {
	var values []string
	for _, f := range h.Fields {
		if strings.EqualFold(f.Name, name) {
			values = append(values, f.Value)
		}
	}
	return values
}

// Has tells whether a field's comma-separated values hold word, in any case.
func (h requestHead) Has(name, word string) bool {
	for _, value := range h.Values(name) {
		for part := range strings.SplitSeq(value, ",") {
			if strings.EqualFold(strings.TrimSpace(part), word) {
				return true
			}
		}
	}
	return false
}

// bodyLength tells how long the body is. Two ways to tell it, or one of them twice or
// in a form that only some read, are Invalid.
func (h requestHead) Body() (bodyLength, error) {
	b, err := h.body()
	if err != nil {
		return bodyLength{}, fmt.Errorf("request head: %w: %w", err, paddock.Invalid)
	}
	return b, nil
}

func (h requestHead) body() (bodyLength, error) {
	lengths, codings := h.Values("Content-Length"), h.Values("Transfer-Encoding")
	switch {
	case len(lengths) > 0 && len(codings) > 0:
		return bodyLength{}, errors.New("both Content-Length and Transfer-Encoding")
	case len(codings) > 1 || len(lengths) > 1:
		return bodyLength{}, errors.New("the length of the body is told twice")
	case len(codings) == 1:
		if h.Minor == 0 || !strings.EqualFold(codings[0], "chunked") {
			return bodyLength{}, errors.New("a Transfer-Encoding other than chunked, or in HTTP/1.0")
		}
		return bodyLength{Chunked: true}, nil
	case len(lengths) == 1:
		n, err := strconv.ParseUint(lengths[0], 10, 63)
		if err != nil || lengths[0][0] == '+' {
			return bodyLength{}, errors.New("Content-Length is not a number")
		}
		return bodyLength{Length: int64(n)}, nil
	}
	return bodyLength{}, nil
}

// Destination gives the host of the request and its port, zero where none is named. The
// one Host field must be there, and the same as the target's host where the target is a
// URL (its scheme is given then) or CONNECT's. User information is Invalid.
func (h requestHead) Destination() (scheme string, host decide.Host, port uint16, err error) {
	scheme, host, port, err = h.destination()
	if err != nil {
		return "", decide.Host{}, 0, fmt.Errorf("request head: %w: %w", err, paddock.Invalid)
	}
	return scheme, host, port, nil
}

func (h requestHead) destination() (scheme string, host decide.Host, port uint16, err error) {
	hosts := h.Values("Host")
	if h.Method == "CONNECT" && len(hosts) == 0 && h.Minor == 0 {
		host, port, err = parseHostPort(h.Target) // Python's way, and it says all
		return "", host, port, err
	}
	if len(hosts) != 1 {
		return "", decide.Host{}, 0, errors.New("not exactly one Host")
	}
	host, port, err = parseHostPort(hosts[0])
	if err != nil {
		return "", decide.Host{}, 0, err
	}
	authority := h.Target
	if h.Method != "CONNECT" {
		if strings.HasPrefix(h.Target, "/") || h.Target == "*" && h.Method == "OPTIONS" {
			return "", host, port, nil
		}
		var ok bool
		scheme, authority, ok = strings.Cut(h.Target, "://")
		if !ok {
			return "", decide.Host{}, 0, errors.New("the target is neither a path nor a URL")
		}
		scheme = strings.ToLower(scheme)
		authority, _, _ = strings.Cut(authority, "/")
		authority, _, _ = strings.Cut(authority, "?")
	}
	targetHost, targetPort, err := parseHostPort(authority)
	if err != nil {
		return "", decide.Host{}, 0, err
	}
	same := portOf(scheme, port) == portOf(scheme, targetPort) || h.Method == "CONNECT" && port == 0
	if targetHost != host || !same {
		return "", decide.Host{}, 0, errors.New("the Host header differs from the target")
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

// parseHostPort reads "host" or "host:port"; the port is zero where there is none.
func parseHostPort(s string) (decide.Host, uint16, error) {
	name, port, err := decide.SplitPort(s)
	if err != nil {
		return decide.Host{}, 0, err
	}
	// ParseHost takes IPv6 addresses without brackets too; here they would be
	// read in two ways.
	if strings.Contains(name, ":") && !strings.HasPrefix(name, "[") {
		return decide.Host{}, 0, fmt.Errorf("host: an IPv6 address without brackets: %w", paddock.Invalid)
	}
	host, err := decide.ParseHost(name)
	return host, port, err
}

func isToken(s string) bool {
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
