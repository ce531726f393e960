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
	// headMax is the maximum length of a head.
	headMax = 128 << 10
	// fieldsMax is the maximum number of fields of a head.
	fieldsMax = 256
)

// A headField is a field of a head. Name is as received.
type headField struct{ Name, Value string }

// A requestHead is a request line and its fields.
type requestHead struct {
	Method, Target string
	Minor          int // 0 or 1: the version is 1.Minor
	Fields         []headField
}

// A bodyLength is the length of a message's body.
type bodyLength struct {
	Chunked bool
	Length  int64 // if not chunked
}

// parseHead parses a head including the empty line at its end. Everything that a lenient
// reader would repair is Invalid: lines that end with only LF, folded lines, space around
// names, control characters, other versions.
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

// checkRequestTarget checks the target of a request that did not arrive as a head. It
// refuses what parseHead refuses.
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
		// A client never sends a fragment. Some servers take a backslash for a slash.
		if c := target[i]; c <= ' ' || c >= 0x7f || c == '#' || c == '\\' {
			return fmt.Errorf("the target holds %q", string(rune(c)))
		}
	}
	return nil
}

// parseTrailer parses the fields of a trailer as parseHead does.
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

// Values returns the values of a field in their order. It ignores the case of the name.
func (h requestHead) Values(name string) []string {
	var values []string
	for _, f := range h.Fields {
		if strings.EqualFold(f.Name, name) {
			values = append(values, f.Value)
		}
	}
	return values
}

// Has reports whether a field's comma-separated values contain word, in any case.
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

// Body returns the length of the body. Two different indications, a repeated one, or a form
// that only some servers accept are Invalid.
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

// Destination returns the host of the request and its port, or zero if there is none. There
// must be exactly one Host field. It must equal the host of the target if the target is a
// URL, whose scheme is returned, or that of CONNECT. User information is Invalid.
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
		host, port, err = parseHostPort(h.Target) // as Python sends it, and complete
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

// portOf returns the port, or the default port of the scheme for zero.
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

// parseHostPort parses "host" or "host:port". The port is zero if there is none.
func parseHostPort(s string) (decide.Host, uint16, error) {
	name, port, err := decide.SplitPort(s)
	if err != nil {
		return decide.Host{}, 0, err
	}
	// ParseHost accepts IPv6 addresses without brackets, which are ambiguous here.
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
