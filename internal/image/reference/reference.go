// Package reference reads the references of images. It does no I/O.
package reference

import (
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// A Reference names an image: HOST[:PORT]/NAME[:TAG][@DIGEST].
type Reference struct {
	Host   string // with its port, if it has one
	Name   string
	Tag    string
	Digest string // "sha256:…"; empty is what the tag leads to
}

// The registry of names without one, which answers at another host.
const (
	usualHost   = "docker.io"
	usualServer = "registry-1.docker.io"
	usualTag    = "latest"
	library     = "library/"
)

// Parse parses a reference as Docker's tools do. The default host is docker.io, where a
// name without a slash is in "library". The default tag is "latest".
func Parse(text string) (Reference, error) {
	r, why := parse(text)
	if why != "" {
		if len(text) > 200 {
			text = text[:200] + "…"
		}
		return Reference{}, fmt.Errorf("%q names no image: %s: %w", text, why, paddock.Invalid)
	}
	return r, nil
}

func parse(text string) (r Reference, why string) {
	if len(text) > 1024 {
		return r, "it is too long"
	}
	rest, digest, pinned := strings.Cut(text, "@")
	if pinned {
		if !GoodDigest(digest) {
			return r, "after @ stands sha256: and 64 digits"
		}
		r.Digest = digest
	}
	r.Host = usualHost
	if first, after, ok := strings.Cut(rest, "/"); ok && (strings.ContainsAny(first, ".:") || first == "localhost") {
		r.Host, rest = first, after
	}
	if i := strings.LastIndexByte(rest, ':'); i >= 0 {
		rest, r.Tag = rest[:i], rest[i+1:]
		if !goodTag(r.Tag) {
			return r, "its tag is of letters, digits, dots, dashes and underscores"
		}
	}
	if r.Tag == "" && r.Digest == "" {
		r.Tag = usualTag
	}
	if !goodHost(r.Host) {
		return r, "its host is none"
	}
	if r.Host == "index.docker.io" || r.Host == usualServer {
		r.Host = usualHost
	}
	if r.Host == usualHost && !strings.Contains(rest, "/") {
		rest = library + rest
	}
	if r.Name = rest; len(rest) > 255 {
		return r, "its name is too long"
	}
	for part := range strings.SplitSeq(rest, "/") {
		if part == "" || strings.Trim(part, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" || strings.ContainsAny(part[:1]+part[len(part)-1:], "._-") || strings.Contains(part, "..") {
			return r, "its name is of small letters, digits and, between them, dots, dashes and underscores"
		}
	}
	return r, ""
}

func goodHost(text string) bool {
	host, port := text, ""
	if strings.Contains(strings.TrimPrefix(text, "["), ":") {
		var err error
		if host, port, err = net.SplitHostPort(text); err != nil {
			return false
		}
		if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || strconv.FormatUint(n, 10) != port {
			return false
		}
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return !strings.Contains(host, "%")
	}
	if len(host) > 253 {
		return false
	}
	for part := range strings.SplitSeq(host, ".") {
		if part == "" || len(part) > 63 || strings.Trim(part, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != "" || part[0] == '-' {
			return false
		}
	}
	return true
}

func goodTag(text string) bool {
	return text != "" && len(text) <= 128 && text[0] != '.' && text[0] != '-' &&
		strings.Trim(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-") == ""
}

// GoodDigest tells whether a text is a digest: sha256: and 64 digits.
func GoodDigest(text string) bool {
	hex, ok := strings.CutPrefix(text, "sha256:")
	return ok && len(hex) == 64 && strings.Trim(hex, "0123456789abcdef") == ""
}

func (r Reference) String() string {
	text := r.Host + "/" + r.Name
	if r.Tag != "" {
		text += ":" + r.Tag
	}
	if r.Digest != "" {
		text += "@" + r.Digest
	}
	return text
}

// Server is where the registry answers.
func (r Reference) Server() string {
	if r.Host == usualHost {
		return usualServer
	}
	return r.Host
}

// Plain tells whether the registry is this machine's own, with which HTTP is
// spoken: the traffic leaves no machine.
func (r Reference) Plain() bool { return Loopback(r.Host) }

// Loopback tells whether a host, with or without a port, is this machine.
func Loopback(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return host == "localhost" || err == nil && addr.IsLoopback()
}
