package gitlogin

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
)

const (
	// name is that of the credential in records, and the user that git in the box sends.
	recordName = "git login"
	boxUser    = "paddock"

	// fresh is how long an answer of the host's git is used. One push is several requests.
	fresh = time.Minute
)

// A Broker asks git on the host for credentials. It is safe for concurrent use.
type Broker struct {
	config      Config
	placeholder string
	held        []*held
	name, email string

	ask     func(Remote) (credential, error)
	ended   <-chan struct{}
	end     context.CancelFunc
	running sync.WaitGroup // questions to git
}

var _ gatewayclient.Login = (*Broker)(nil)

// A held repository is one with its rule, and the last answer about it.
type held struct {
	Remote
	rule  paddock.NetworkRule
	rules *decide.Rules

	mu     sync.Mutex
	last   credential    // guarded by mu
	at     time.Time     // guarded by mu
	failed bool          // guarded by mu; at the last time
	asking chan struct{} // guarded by mu; closed when the question that runs has its answer. Nil is none
}

// New prepares the repositories of a configuration. It asks the host who commits, and for no credential. Reach reports
// whether a box could say what is at a path; git is refused where that is so of what it runs or obeys, and the lookup gives
// nothing of that kind. Questions to git end with ctx, and with Close.
func New(ctx context.Context, lookup func(string) (string, bool), reach func(string) bool, c Config) (*Broker, error) {
	git, err := findGit(lookup, reach)
	if err != nil {
		return nil, err
	}
	if len(c.Remotes) > 0 || !c.Named {
		if err := git.outOfReach(ctx, lookup, reach); err != nil {
			return nil, err
		}
	}
	b := &Broker{config: c, placeholder: "paddock" + strings.ToLower(rand.Text())}
	for _, r := range c.Remotes {
		h := &held{Remote: r, rule: paddock.NetworkRule{
			Host: r.Host.String(), Ports: []uint16{r.Port}, Scheme: "https", Methods: []string{"GET", "POST"}, Paths: r.paths(), Inspect: true,
		}}
		if h.rules, err = decide.Compile(paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{h.rule}}); err != nil {
			return nil, fmt.Errorf("remote %s: %w", r, err)
		}
		b.held = append(b.held, h)
	}
	if !c.Named { // what the repository says itself holds inside too
		b.name, b.email = git.value(ctx, "user.name"), git.value(ctx, "user.email")
	}
	run, end := context.WithCancel(ctx)
	b.ended, b.end = run.Done(), end
	b.ask = func(r Remote) (credential, error) { return git.credential(run, r) }
	return b, nil
}

// Close ends what still asks git, with the helpers, and waits for it. There are no logins afterwards.
func (b *Broker) Close() {
	b.end()
	for _, h := range b.held { // whoever has the lock now begins a question before it is waited for; nobody does later
		h.mu.Lock()
		h.mu.Unlock() //nolint:staticcheck // see above
	}
	b.running.Wait()
}

func (b *Broker) closed() bool {
	select {
	case <-b.ended:
		return true
	default:
		return false
	}
}

// Rules returns the rules that the repositories need. They allow the requests of git to them, and nothing else there.
func (b *Broker) Rules() []paddock.NetworkRule {
	var list []paddock.NetworkRule
	for _, h := range b.held {
		list = append(list, h.rule)
	}
	return list
}

// Settings returns the configuration of git in the box: keys with their values. Git there gets the placeholder from a
// helper for the hosts of the repositories, which takes the place of all others.
func (b *Broker) Settings() [][2]string {
	var list [][2]string
	var hosts []string
	for _, h := range b.held {
		if at := h.host(); !slices.Contains(hosts, at) {
			hosts = append(hosts, at)
			key := "credential.https://" + at + ".helper"
			list = append(list, [2]string{key, ""}, [2]string{key, fmt.Sprintf(`!f() { test "$1" != get || printf 'username=%s\npassword=%s\n'; }; f`, boxUser, b.placeholder)})
		}
	}
	for _, s := range [][2]string{{"user.name", b.name}, {"user.email", b.email}} {
		if s[1] != "" {
			list = append(list, s)
		}
	}
	return list
}

// Words says for the screen what git in the box can do, or nothing. The names are safe for a terminal.
func (b *Broker) Words() string {
	if len(b.held) == 0 {
		return ""
	}
	const most = 3
	var list []string
	for i, h := range b.held {
		if i == most {
			list = append(list, fmt.Sprintf("%d more", len(b.held)-most))
			break
		}
		list = append(list, h.String())
	}
	return "git reaches " + strings.Join(list, ", ") + " with your login, which stays outside"
}

// Notes says what is left out. It is not safe for a terminal.
func (b *Broker) Notes() []string { return b.config.Notes }

// Failed lists the repositories for which git on the host had no credential when it was asked.
func (b *Broker) Failed() []string {
	var list []string
	for _, h := range b.held {
		h.mu.Lock()
		if h.failed {
			list = append(list, h.String())
		}
		h.mu.Unlock()
	}
	return list
}

// Hosts implements [gatewayclient.Login].
func (b *Broker) Hosts() []string {
	var list []string
	for _, h := range b.held {
		list = append(list, net.JoinHostPort(h.Host.String(), strconv.Itoa(int(h.Port))))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Login implements [gatewayclient.Login].
func (b *Broker) Login(ctx context.Context, r gatewayclient.LoginRequest) gatewayclient.LoginAnswer {
	at, err := decide.ParseHost(r.Host)
	if err != nil {
		return gatewayclient.LoginAnswer{}
	}
	q := decide.Request{Scheme: "https", Method: r.Method, Path: r.Path, RawQuery: r.Query}
	for _, h := range b.held {
		if h.Host != at || h.Port != r.Port || !h.rules.Request(decide.Flow{Host: at, Port: r.Port}, q).Allow {
			continue
		}
		c, ok := b.credential(ctx, h)
		if !ok {
			continue // perhaps another user of it has a login; else it goes as it is: what the public may read, it may read too
		}
		// The pair stands in Basic authorization, so that the user's name, which may be any word, is looked for nowhere else.
		headers := []string{"Authorization"}
		return gatewayclient.LoginAnswer{Tokens: []gatewayclient.LoginToken{
			{Name: recordName, Value: c.user + ":" + c.password, Placeholders: []string{boxUser + ":" + b.placeholder}, Headers: headers},
			{Name: recordName, Value: c.password, Placeholders: []string{b.placeholder}, Headers: headers},
		}}
	}
	return gatewayclient.LoginAnswer{}
}

// credential returns that of the repository, and asks if the last answer is old. The question is the broker's and not the
// request's: a box that gives a request up ends no question and begins no second one.
func (b *Broker) credential(ctx context.Context, h *held) (credential, bool) {
	h.mu.Lock()
	now := time.Now()
	if !h.at.IsZero() && now.Sub(h.at) < fresh && (h.last.until.IsZero() || now.Before(h.last.until)) || b.closed() {
		defer h.mu.Unlock()
		return h.last, !h.failed && !b.closed()
	}
	if h.asking == nil {
		h.asking = make(chan struct{})
		b.running.Go(func() { b.question(h) })
	}
	asking := h.asking
	h.mu.Unlock()
	select {
	case <-asking:
	case <-ctx.Done():
		return credential{}, false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last, !h.failed
}

// question asks git, and keeps the answer also if it is none.
func (b *Broker) question(h *held) {
	c, err := b.ask(h.Remote)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last, h.at, h.failed = c, time.Now(), err != nil
	close(h.asking)
	h.asking = nil
}
