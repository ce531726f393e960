package fetch

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// Statuses of curl.
const (
	curlURL      = 3
	curlResolve  = 6
	curlConnect  = 7
	curlFailed   = 22
	curlWrite    = 23
	curlRead     = 26
	curlTimeout  = 28
	curlTLS      = 60
	curlRedirect = 47
	curlEmpty    = 52
	curlMisused  = 2
)

func curlSpec() *command.Spec {
	o := func(short byte, long string, arg command.Arg, help string) command.Option {
		return command.Option{Short: short, Long: long, Arg: arg, Help: help}
	}
	return &command.Spec{
		Name: "curl", Synopsis: "[options...] <url>...", Exit: curlMisused, About: "Transfer what a URL names, where this sandbox has a network.",
		Options: []command.Option{
			o('X', "request", command.Required, "use this method"), o('d', "data", command.Required, "send this, or @FILE without line breaks"),
			o(0, "data-raw", command.Required, "send this"), o(0, "data-binary", command.Required, "send this, or @FILE as it is"),
			o(0, "data-urlencode", command.Required, "send this, encoded"), o(0, "json", command.Required, "send this as JSON"),
			o('H', "header", command.Required, "send this header"), o('o', "output", command.Required, "write to this file"),
			o('O', "remote-name", command.None, "write to a file of the URL's last name"), o('L', "location", command.None, "follow redirects"),
			o('s', "silent", command.None, "say nothing"), o('S', "show-error", command.None, "say errors even so"),
			o('f', "fail", command.None, "an error of the server is one"), o(0, "fail-with-body", command.None, "the same, with its body"),
			o('i', "include", command.None, "show headers too"), o('I', "head", command.None, "show headers only"),
			o('v', "verbose", command.None, "tell what happens"), o('u', "user", command.Required, "USER:PASSWORD"),
			o('A', "user-agent", command.Required, "the program's name"), o('e', "referer", command.Required, "the page before"),
			o('k', "insecure", command.None, "believe any server"), o('G', "get", command.None, "put data into the URL"),
			o('b', "cookie", command.Required, "send these cookies"), o('T', "upload-file", command.Required, "send this file"),
			o('w', "write-out", command.Required, "print this afterwards"), o('m', "max-time", command.Required, "seconds for all"),
			o(0, "connect-timeout", command.Required, "seconds to connect"), o(0, "retry", command.Required, "try again so often"),
			o(0, "compressed", command.None, "ask for compression"), o('r', "range", command.Required, "ask for these bytes"),
			o(0, "url", command.Required, "one more URL"), o('#', "progress-bar", command.None, ""), o('q', "disable", command.None, ""),
			o('g', "globoff", command.None, "no [1-3] and {a,b}"), o(0, "max-redirs", command.Required, "follow so many"), o('N', "no-buffer", command.None, ""),
			o(0, "no-progress-meter", command.None, ""), o('D', "dump-header", command.Required, "write headers to this file"), o(0, "create-dirs", command.None, "make directories of -o"),
		},
	}
}

// A transfer is what the command line asks for.
type transfer struct {
	t     *kernel.Task
	roots func() *x509.CertPool
	a     *command.Args
}

func curl(t *kernel.Task, roots func() *x509.CertPool) int {
	spec := curlSpec()
	a, status, ok := spec.Parse(t)
	if !ok {
		return status
	}
	x := &transfer{t, roots, a}
	var list []string
	for _, f := range a.Flags {
		if f.Key == "url" {
			list = append(list, f.Value)
		}
	}
	list = append(list, a.Operands...)
	if len(list) == 0 {
		return spec.Usage(t, "no URL specified")
	}
	var outputs []string
	for _, f := range a.Flags {
		if f.Key == "o" {
			outputs = append(outputs, f.Value)
		}
	}
	for _, raw := range list {
		all := []string{raw}
		if !a.Has("g") {
			var err error
			if all, err = glob(raw, int(min(t.K.Limits.Brace, 10_000))); err != nil {
				return x.complain(curlURL, err.Error())
			}
		}
		for _, u := range all {
			out := ""
			if len(outputs) > 0 {
				out, outputs = outputs[0], outputs[min(1, len(outputs)-1):]
			}
			status = x.one(u, out)
		}
	}
	return status
}

// complain says why a transfer failed.
func (x *transfer) complain(status int, text string) int {
	if !x.a.Has("s") || x.a.Has("S") {
		_ = x.t.Flush() // the end of the program tells of it
		_, _ = x.t.Write(2, []byte(fmt.Sprintf("curl: (%d) %s\n", status, text)))
	}
	return status
}

func (x *transfer) one(raw, out string) int {
	if !strings.Contains(raw, "://") {
		raw = "http://" + raw
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" {
		return x.complain(curlURL, "URL rejected: Malformed input to a URL function")
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return x.complain(1, fmt.Sprintf("Protocol \"%s\" not supported or disabled in libcurl", u.Scheme))
	}
	r, status := x.request(u)
	if status != 0 {
		return status
	}
	tries := 1
	if v, ok := x.a.Value("retry"); ok {
		n, _ := strconv.Atoi(v) // what is no number is none
		tries += max(0, min(n, 20))
	}
	for try := range tries {
		began := time.Now()
		var code int
		err = do(x.t, x.roots, *r, func(a *answer) error {
			if try+1 < tries && (a.StatusCode == 408 || a.StatusCode == 429 || a.StatusCode >= 500) {
				return errAgain
			}
			var err error
			code, err = x.receive(u, a, out, began)
			return err
		})
		if err == nil {
			return code
		}
		if errors.Is(err, errAgain) && x.t.Sleep(time.Second<<min(try, 6)) == nil {
			continue
		}
		break
	}
	return x.failure(u, err)
}

var errAgain = errors.New("try again")

// A local error is one of the computer's files.
type local struct {
	status int
	text   string
}

func (l *local) Error() string { return l.text }

func (x *transfer) failure(u *url.URL, err error) int {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	var l *local
	var dns *net.DNSError
	var unknown x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.As(err, &l):
		return x.complain(l.status, l.text)
	case errors.Is(err, errNoNetwork) && !isAddress(u.Hostname()):
		return x.complain(curlResolve, fmt.Sprintf("Could not resolve host: %s (%v)", u.Hostname(), err))
	case errors.Is(err, errNoNetwork):
		return x.complain(curlConnect, fmt.Sprintf("Failed to connect to %s port %s: %v", u.Hostname(), port, err))
	case errors.Is(err, errTooManyRedirects):
		return x.complain(curlRedirect, "Maximum redirects followed")
	case errors.Is(err, context.DeadlineExceeded):
		return x.complain(curlTimeout, "Operation timed out")
	case errors.As(err, &dns):
		return x.complain(curlResolve, fmt.Sprintf("Could not resolve host: %s (%s)", u.Hostname(), dns.Err))
	case errors.As(err, &unknown), errors.As(err, &name):
		return x.complain(curlTLS, "SSL certificate problem: "+err.Error())
	case errors.Is(err, io.EOF):
		return x.complain(curlEmpty, "Empty reply from server")
	}
	return x.complain(curlConnect, fmt.Sprintf("Failed to connect to %s port %s: %v", u.Hostname(), port, errors.Unwrap(err)))
}

// isAddress reports whether a host of a URL is an address, so that no name has
// to be resolved.
func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}

// request reads the flags that say what is sent.
func (x *transfer) request(u *url.URL) (*request, int) {
	a := x.a
	r := &request{method: "GET", url: u, header: http.Header{}, follow: a.Has("L"), insecure: a.Has("k"), redirects: 50}
	r.header.Set("User-Agent", "curl/8.0.0")
	r.header.Set("Accept", "*/*")
	var data []string
	sent := false
	for _, f := range a.Flags {
		v := f.Value
		switch f.Key {
		case "d", "data-binary", "json":
			sent = true
			if name, ok := strings.CutPrefix(v, "@"); ok {
				b, err := command.ReadAll(x.t, name)
				if err != nil {
					return nil, x.complain(curlRead, "Failed to open "+name)
				}
				if v = string(b); f.Key == "d" {
					v = strings.NewReplacer("\r", "", "\n", "", "\x00", "").Replace(v)
				}
			}
			data = append(data, v)
			if f.Key == "json" {
				r.header.Set("Content-Type", "application/json")
				r.header.Set("Accept", "application/json")
			}
		case "data-raw":
			sent = true
			data = append(data, v)
		case "data-urlencode":
			sent = true
			name, value, named := strings.Cut(v, "=")
			switch {
			case named && name != "":
				data = append(data, name+"="+escape(value))
			case named:
				data = append(data, escape(value))
			default:
				data = append(data, escape(v))
			}
		case "T":
			b, err := command.ReadAll(x.t, v)
			if err != nil {
				return nil, x.complain(curlRead, "Can't open '"+v+"'!")
			}
			r.method, r.body = "PUT", b
		case "A":
			r.header.Set("User-Agent", v)
		case "e":
			r.header.Set("Referer", v)
		case "b":
			r.header.Set("Cookie", v)
		case "r":
			r.header.Set("Range", "bytes="+v)
		case "u":
			r.header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(v)))
		case "m", "connect-timeout":
			s, err := strconv.ParseFloat(v, 64)
			if err != nil || s < 0 || s > 1e9 {
				return nil, x.complain(curlMisused, "expected a proper numerical parameter")
			}
			if d := time.Duration(s * float64(time.Second)); d > 0 && (r.timeout == 0 || d < r.timeout) {
				r.timeout = d
			}
		case "max-redirs":
			r.redirects, _ = strconv.Atoi(v) // what is no number is none
		}
	}
	if a.Has("compressed") {
		r.header.Set("Accept-Encoding", "gzip")
	}
	if sent && a.Has("G") {
		copied := *u
		if copied.RawQuery != "" {
			copied.RawQuery += "&"
		}
		copied.RawQuery += strings.Join(data, "&")
		r.url = &copied
	} else if sent {
		r.method, r.body = "POST", []byte(strings.Join(data, "&"))
		if r.header.Get("Content-Type") == "" {
			r.header.Set("Content-Type", "application/x-www-form-urlencoded")
		}
	}
	if a.Has("I") {
		r.method = "HEAD"
	}
	if v, ok := a.Value("X"); ok {
		r.method = v
	}
	for _, f := range a.Flags {
		if f.Key != "H" {
			continue
		}
		name, value, ok := strings.Cut(f.Value, ":")
		if strings.ContainsAny(f.Value, "\r\n") {
			return nil, x.complain(curlMisused, "a header with a line break in it")
		}
		switch value = strings.TrimSpace(value); {
		case !ok && strings.HasSuffix(name, ";"):
			r.header.Set(strings.TrimSuffix(name, ";"), "")
		case value == "":
			r.header.Del(name)
		default:
			r.header.Set(name, value)
		}
	}
	return r, 0
}

func escape(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") }

func sorted(h http.Header) []string {
	names := make([]string, 0, len(h))
	for n := range h {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// receive writes an answer to where it belongs.
func (x *transfer) receive(u *url.URL, a *answer, out string, began time.Time) (int, error) {
	if x.a.Has("O") && out == "" {
		if out = path.Base(u.Path); out == "/" || out == "." {
			return 0, &local{curlWrite, "Remote file name has no length!"}
		}
	}
	if x.a.Has("v") {
		_, _ = x.t.Write(2, []byte(fmt.Sprintf("> %s %s\n< %s %s\n", a.Request.Method, a.Request.URL.RequestURI(), a.Proto, a.Status)))
	}
	var w io.Writer = x.t.Out()
	if out != "" && out != "-" {
		if x.a.Has("create-dirs") {
			if err := x.t.View.MkdirAll(path.Dir(out), 0o777); err != nil {
				return 0, &local{curlWrite, "Failed to create directory for " + out}
			}
		}
		f, err := command.Create(x.t, out, linux.O_TRUNC)
		if err != nil {
			return 0, &local{curlWrite, "Failed to open the file " + out + ": " + vfs.Message(err)}
		}
		defer func() { _ = f.Close() }() // writing tells of errors
		w = f
	}
	if name, ok := x.a.Value("D"); ok {
		f, err := command.Create(x.t, name, linux.O_TRUNC)
		if err != nil {
			return 0, &local{curlWrite, "Failed to open " + name}
		}
		head(f, a.Response, sorted(a.Header))
		_ = f.Close() // files in memory
	}
	if x.a.Has("i") || x.a.Has("I") {
		for _, r := range a.passed {
			head(w, r, sorted(r.Header))
		}
		head(w, a.Response, sorted(a.Header))
	}
	status := 0
	bad := a.StatusCode >= 400 && (x.a.Has("f") || x.a.Has("fail-with-body"))
	if bad {
		status = x.complain(curlFailed, fmt.Sprintf("The requested URL returned error: %d", a.StatusCode))
	}
	var size int64
	if !bad || x.a.Has("fail-with-body") {
		var in io.Reader = a.Body
		if x.a.Has("compressed") && strings.EqualFold(a.Header.Get("Content-Encoding"), "gzip") {
			limit := x.t.K.Limits.Download
			in = &body{t: x.t, in: &unpacker{in: a.raw, left: limit + 1}, limit: limit}
		}
		var err error
		// A buffered writer that reads by itself would have its buffer written out
		// by the waiting for what is read, and forget what was in it.
		if size, err = io.Copy(struct{ io.Writer }{w}, in); errors.Is(err, errEncoding) {
			return 0, &local{61, "Unrecognized content encoding type"}
		} else if err != nil {
			return 0, err
		}
	}
	if v, ok := x.a.Value("w"); ok {
		_, _ = x.t.Out().WriteString(writeOut(v, a, size, time.Since(began))) // the end tells of it
	}
	return status, nil
}

// writeOut fills in the variables of -w.
func writeOut(f string, a *answer, size int64, took time.Duration) string {
	var b strings.Builder
	for i := 0; i < len(f); i++ {
		switch {
		case strings.HasPrefix(f[i:], "%{"):
			end := strings.IndexByte(f[i:], '}')
			if end < 0 {
				b.WriteString(f[i:])
				return b.String()
			}
			switch name := f[i+2 : i+end]; name {
			case "http_code", "response_code":
				fmt.Fprintf(&b, "%03d", a.StatusCode)
			case "size_download":
				fmt.Fprint(&b, size)
			case "url_effective", "url":
				b.WriteString(a.url)
			case "content_type":
				b.WriteString(a.Header.Get("Content-Type"))
			case "num_redirects":
				fmt.Fprint(&b, a.redirects)
			case "redirect_url":
				if l, err := a.Location(); err == nil {
					b.WriteString(l.String())
				}
			case "method":
				b.WriteString(a.Request.Method)
			case "http_version":
				fmt.Fprintf(&b, "%d.%d", a.ProtoMajor, a.ProtoMinor)
			case "time_total":
				fmt.Fprintf(&b, "%.6f", took.Seconds())
			}
			i += end
		case f[i] == '%' && i+1 < len(f) && f[i+1] == '%':
			b.WriteByte('%')
			i++
		case f[i] == '\\' && i+1 < len(f):
			i++
			switch f[i] {
			case 'n':
				b.WriteByte('\n')
			case 't':
				b.WriteByte('\t')
			case 'r':
				b.WriteByte('\r')
			default:
				b.WriteByte('\\')
				b.WriteByte(f[i])
			}
		default:
			b.WriteByte(f[i])
		}
	}
	return b.String()
}

// glob gives the URLs of one with {a,b} and [1-3] in it, at most as many.
func glob(s string, most int) ([]string, error) {
	out := []string{""}
	for len(s) > 0 {
		i := strings.IndexAny(s, "{[")
		if i < 0 {
			i = len(s)
		}
		parts := []string{s[:i]}
		s = s[i:]
		if i == 0 {
			var err error
			if parts, s, err = alternatives(s, most); err != nil {
				return nil, err
			}
		}
		if len(out)*len(parts) > most {
			return nil, errors.New("range overflow")
		}
		next := make([]string, 0, len(out)*len(parts))
		for _, a := range out {
			for _, p := range parts {
				next = append(next, a+p)
			}
		}
		out = next
	}
	return out, nil
}

func alternatives(s string, most int) (parts []string, rest string, err error) {
	end := strings.IndexAny(s[1:], "}]") + 1
	if end == 0 {
		return nil, "", errors.New("unmatched brace in URL")
	}
	inner := s[1:end]
	if s[0] == '{' {
		return strings.Split(inner, ","), s[end+1:], nil
	}
	if strings.Contains(inner, ":") && net.ParseIP(inner) != nil {
		return []string{s[:end+1]}, s[end+1:], nil
	}
	span, by, _ := strings.Cut(inner, ":")
	from, to, ok := strings.Cut(span, "-")
	step := 1
	if by != "" {
		if step, err = strconv.Atoi(by); err != nil || step < 1 {
			return nil, "", errors.New("bad range in URL")
		}
	}
	if ok && len(from) == 1 && len(to) == 1 && (from[0] < '0' || from[0] > '9') {
		for c := int(from[0]); c <= int(to[0]); c += step {
			parts = append(parts, string(rune(c)))
		}
		return parts, s[end+1:], nil
	}
	a, e1 := strconv.Atoi(from)
	b, e2 := strconv.Atoi(to)
	if !ok || e1 != nil || e2 != nil || a < 0 || b < a || (b-a)/step >= most {
		return nil, "", errors.New("bad range in URL")
	}
	width := 0
	if strings.HasPrefix(from, "0") {
		width = min(len(from), 64)
	}
	for n := a; n <= b; n += step {
		parts = append(parts, fmt.Sprintf("%0*d", width, n))
	}
	return parts, s[end+1:], nil
}
