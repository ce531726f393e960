package envd

import (
	"bufio"
	"context"
	"crypto/subtle"
	"fmt"
	"io"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b"
)

// tokenHeader is the header that carries the token.
const tokenHeader = "X-Access-Token"

const unauthorized = "unauthorized access, please provide a valid access token or method signing if supported"

// authorize checks the token. Requests for files may have a signature instead, which their
// handlers check.
func (b *Box) authorize(r *http.Request) error {
	if r.URL.Path == "/health" || b.trusts(r) {
		return nil
	}
	if r.URL.Path == "/files" && (r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodPost) {
		return nil
	}
	return refuse(http.StatusUnauthorized, connect.CodeUnauthenticated, unauthorized)
}

// trusts reports whether the request has the token, or needs none.
func (b *Box) trusts(r *http.Request) bool {
	return b.o.Token == "" || subtle.ConstantTimeCompare([]byte(r.Header.Get(tokenHeader)), []byte(b.o.Token)) == 1
}

// signed checks that a request may read or write a file.
func (b *Box) signed(r *http.Request) error {
	if b.trusts(r) {
		return nil
	}
	no := func(message string) error {
		return refuse(http.StatusUnauthorized, connect.CodeUnauthenticated, message)
	}
	q := r.URL.Query()
	if q.Get("signature") == "" {
		return no("missing signature query parameter")
	}
	if !e2b.Signed(b.o.Token, r.Method, q) {
		return no("invalid signature")
	}
	if text := q.Get("signature_expiration"); text != "" {
		at, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return no("invalid signature")
		}
		if b.now().Unix() > at {
			return no("signature is already expired")
		}
	}
	return nil
}

// A place caches the sandbox's user and home directory.
type place struct {
	mu    sync.Mutex
	known bool   // guarded by mu
	user  string // guarded by mu; the name inside
	home  string // guarded by mu
}

// find returns user and home. It asks the sandbox until it gets an answer.
func (b *Box) find(ctx context.Context) (user, home string, _ error) {
	p := &b.place
	p.mu.Lock()
	known, user, home := p.known, p.user, p.home
	p.mu.Unlock()
	if known {
		return user, home, nil
	}
	st, err := b.o.Sandbox.Status(ctx)
	if err != nil {
		return "", "", err
	}
	user, home = st.User, b.homeOf(ctx, st.User)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.known, p.user, p.home = true, user, home
	return user, home, nil
}

// maxPasswd bounds how much of /etc/passwd is read, because the guest may have written it.
const maxPasswd = 1 << 20

// homeOf looks up the home directory in the sandbox's /etc/passwd.
func (b *Box) homeOf(ctx context.Context, user string) string {
	home := "/home/" + user
	f, err := b.o.Sandbox.FS().Open(ctx, "/etc/passwd", paddock.OpenOptions{Length: maxPasswd})
	if err != nil {
		return home
	}
	defer f.Close()
	for lines := bufio.NewScanner(io.LimitReader(f, maxPasswd)); lines.Scan(); {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) == 7 && fields[0] == user && path.IsAbs(fields[5]) && len(fields[5]) <= maxName {
			return path.Clean(fields[5])
		}
	}
	return home
}

// ownUser is the name that E2B's clients use for the sandbox's own user.
const ownUser = "user"

// own reports whether a name means the sandbox's own user.
func (b *Box) own(ctx context.Context, name string) (bool, error) {
	if name == "" || name == ownUser || name == b.o.User && name != "root" {
		return true, nil
	}
	user, _, err := b.find(ctx)
	return name == user, err
}

// caller returns the user that an RPC names. Empty is the sandbox's own.
func (b *Box) caller(ctx context.Context, h http.Header) (string, error) {
	text := h.Get("Authorization")
	if text == "" {
		return "", nil
	}
	r := http.Request{Header: http.Header{"Authorization": {text}}}
	name, _, ok := r.BasicAuth()
	if !ok {
		return "", nil // another scheme, which names no user
	}
	own, err := b.own(ctx, name)
	if own || err != nil {
		return "", err
	}
	if len(name) > maxTag || strings.ContainsAny(name, "\x00\n:") {
		return "", unknownUser(name, "")
	}
	return name, nil
}

// runner returns the user to run a command as. If the request names none, it is the last
// user of the template's steps. Empty is the sandbox's own.
func (b *Box) runner(ctx context.Context, h http.Header) (string, error) {
	user, err := b.caller(ctx, h)
	if err != nil || user != "" || b.o.User != "root" || h.Get("Authorization") != "" {
		return user, err
	}
	if own, err := b.own(ctx, b.o.User); own || err != nil {
		return "", err
	}
	return b.o.User, nil
}

// only names the owner of something, if it is known.
func (b *Box) only(ctx context.Context, what string) string {
	user, _, err := b.find(ctx)
	if err != nil {
		return ""
	}
	if b.o.Tier == paddock.Auto {
		return fmt.Sprintf("%s %s in this sandbox", what, user)
	}
	return fmt.Sprintf("%s %s in this sandbox, whose tier is %s", what, user, b.o.Tier)
}

func unknownUser(name, why string) error {
	message := fmt.Sprintf("invalid username: '%s'", strings.ToValidUTF8(name, "\ufffd"))
	if why != "" {
		message += ": " + why
	}
	return refuse(http.StatusUnauthorized, connect.CodeUnauthenticated, message)
}

// resolve makes a name absolute as E2B does: "~" is the home directory, and a relative or
// empty name is relative to the default directory.
func (b *Box) resolve(ctx context.Context, name string) (string, error) {
	if strings.IndexByte(name, 0) >= 0 {
		return "", invalid("a path holds a NUL byte")
	}
	if len(name) > maxName {
		return "", invalid(fmt.Sprintf("a path has more than %d bytes", maxName))
	}
	if path.IsAbs(name) {
		return path.Clean(name), nil
	}
	_, home, err := b.find(ctx)
	if err != nil {
		return "", err
	}
	other, isOther := ctx.Value(filesKey{}).(*otherFiles)
	if isOther {
		home = b.homeOf(ctx, other.user)
	}
	if name == "~" || strings.HasPrefix(name, "~/") {
		return path.Join(home, name[1:]), nil
	}
	dir := b.o.Dir
	if dir == "" || isOther {
		dir = home
	}
	return path.Join(dir, name), nil
}
