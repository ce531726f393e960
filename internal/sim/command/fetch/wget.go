package fetch

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// Statuses of wget.
const (
	wgetMisused = 2
	wgetFile    = 3
	wgetNetwork = 4
	wgetServer  = 8
)

func wgetSpec() *command.Spec {
	o := func(short byte, long string, arg command.Arg, help string) command.Option {
		return command.Option{Short: short, Long: long, Arg: arg, Help: help}
	}
	return &command.Spec{
		Name: "wget", Synopsis: "[OPTION]... [URL]...", Exit: wgetMisused, About: "Fetch what URLs name, where this sandbox has a network.",
		Options: []command.Option{
			o('q', "quiet", command.None, "say nothing"), o('O', "output-document", command.Required, "write all to this file"),
			o('P', "directory-prefix", command.Required, "write into this directory"), o('i', "input-file", command.Required, "read URLs from this file"),
			o(0, "header", command.Required, "send this header"), o(0, "post-data", command.Required, "send this"), o(0, "method", command.Required, "use this method"),
			o('S', "server-response", command.None, "show headers"), o(0, "spider", command.None, "only ask whether it is there"),
			o('t', "tries", command.Required, "try so often"), o('T', "timeout", command.Required, "seconds"), o('U', "user-agent", command.Required, "the program's name"),
			{Long: "no-verbose", Help: "say little"}, {Short: 'n', Arg: command.Required, Help: "-nv says little"}, {Long: "no-check-certificate", Help: "believe any server"},
			{Long: "content-on-error", Help: "write what the server says of an error"},
		},
	}
}

func wget(t *kernel.Task, roots func() *x509.CertPool) int {
	spec := wgetSpec()
	a, status, ok := spec.Parse(t)
	if !ok {
		return status
	}
	list := a.Operands
	if name, ok := a.Value("i"); ok {
		b, err := command.ReadAll(t, name)
		if err != nil {
			t.Fail(name, err)
			return wgetFile
		}
		list = append(list, strings.Fields(string(b))...)
	}
	if len(list) == 0 {
		return spec.Usage(t, "missing URL")
	}
	made := false
	for _, raw := range list {
		if s := wgetOne(t, roots, a, raw, made); s != 0 {
			status = s
		}
		made = true
	}
	return status
}

func wgetOne(t *kernel.Task, roots func() *x509.CertPool, a *command.Args, raw string, again bool) int {
	say := func(format string, args ...any) {
		if !a.Has("q") {
			_, _ = t.Write(2, []byte(fmt.Sprintf(format, args...)+"\n")) // nobody else to tell
		}
	}
	if !strings.Contains(raw, "://") {
		raw = "http://" + raw
	}
	u, err := url.Parse(raw)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		say("%s: Unsupported scheme or invalid URL.", raw)
		return 1
	}
	r := request{method: "GET", url: u, header: http.Header{"User-Agent": {"Wget/1.21"}, "Accept": {"*/*"}}, follow: true, redirects: 20, insecure: a.Has("no-check-certificate")}
	if a.Has("spider") {
		r.method = "HEAD"
	}
	for _, f := range a.Flags {
		switch f.Key {
		case "post-data":
			r.method, r.body = "POST", []byte(f.Value)
			r.header.Set("Content-Type", "application/x-www-form-urlencoded")
		case "header":
			name, value, ok := strings.Cut(f.Value, ":")
			if !ok || strings.ContainsAny(f.Value, "\r\n") {
				say("wget: --header: Invalid header '%s'.", f.Value)
				return wgetMisused
			}
			r.header.Set(name, strings.TrimSpace(value))
		case "U":
			r.header.Set("User-Agent", f.Value)
		case "method":
			r.method = f.Value
		case "T":
			if s, err := strconv.ParseFloat(f.Value, 64); err == nil && s > 0 && s < 1e9 {
				r.timeout = time.Duration(s * float64(time.Second))
			}
		}
	}
	code := 0
	err = do(t, roots, r, func(x *answer) error {
		if a.Has("S") {
			var b strings.Builder
			head(&b, x.Response, sorted(x.Header))
			say("  %s", strings.TrimSpace(strings.ReplaceAll(b.String(), "\r\n", "\n  ")))
		}
		if x.StatusCode >= 400 {
			say("ERROR %d: %s.", x.StatusCode, http.StatusText(x.StatusCode))
			code = wgetServer
			if !a.Has("content-on-error") {
				return nil
			}
		}
		if a.Has("spider") {
			say("Remote file exists.")
			return nil
		}
		return wgetSave(t, a, u, x, again, say)
	})
	var l *local
	switch {
	case err == nil:
		return code
	case errors.As(err, &l):
		say("%s", l.text)
		return l.status
	case errors.Is(err, errNoNetwork):
		say("Connecting to %s... failed: %v.", u.Host, err)
	default:
		say("failed: %v.", err)
	}
	return wgetNetwork
}

func wgetSave(t *kernel.Task, a *command.Args, u *url.URL, x *answer, again bool, say func(string, ...any)) error {
	name, given := a.Value("O")
	var w io.Writer = t.Out()
	if !given {
		if name = path.Base(u.Path); name == "/" || name == "." {
			name = "index.html"
		}
		if dir, ok := a.Value("P"); ok {
			if err := t.View.MkdirAll(dir, 0o777); err != nil {
				return &local{wgetFile, dir + ": " + vfs.Message(err)}
			}
			name = path.Join(dir, name)
		}
		for base, n := name, 1; t.View.Access(name, 0) == nil && n < 10_000; n++ {
			name = fmt.Sprintf("%s.%d", base, n)
		}
	}
	if name != "-" {
		flags := linux.O_TRUNC
		if again && given {
			flags = linux.O_APPEND
		}
		f, err := command.Create(t, name, flags)
		if err != nil {
			return &local{wgetFile, name + ": " + vfs.Message(err)}
		}
		defer func() { _ = f.Close() }() // writing tells of errors
		w = f
	}
	n, err := io.Copy(struct{ io.Writer }{w}, x.Body)
	if err == nil {
		say("'%s' saved [%d]", name, n)
	}
	return err
}
