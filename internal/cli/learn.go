package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/policy"
)

func (a *App) policyLearnCommand() *cobra.Command {
	f := &runFlags{}
	var to string
	c := &cobra.Command{
		Use:   "learn [flags] [--] COMMAND [ARGUMENT…]",
		Short: "Run a command with an open way out, and write the policy that it needs",
		Long: `Run a command in a sandbox that can reach every public address, on every port,
and write a policy file that allows what it reached and nothing else. Private
addresses and this machine's own are refused as ever, but for those that
--allow names, such as that of a mirror of your own; the file names what was
refused in comments.

While it runs, nothing keeps the command from sending what it can read to
anybody: run only what you would let out, with files that hold no secrets. Read
the file before you use it: what a command reached once is not what it should
be allowed.

The file goes to standard output, and the command's own output to standard
error; with -o FILE, which must not be there yet, to FILE.

Exit status: that of the command, as paddock run has it.`,
		Example: `  paddock policy learn -o build.yaml --workspace . -- make deps
  paddock run --policy build.yaml --workspace . -- make deps`,
		DisableFlagsInUseLine: true,
		RunE: func(c *cobra.Command, args []string) error {
			return a.learn(c.Context(), f, args, to, c.Flags().Changed)
		},
	}
	fs := c.Flags()
	fs.SortFlags = false
	fs.SetInterspersed(false)
	fs.StringVarP(&to, "output", "o", "", "write the policy to this new `FILE`")
	f.register(fs)
	fs.BoolVarP(&f.verbose, "verbose", "v", false, "tell which tier was chosen, and why")
	return c
}

// learn runs the command and writes what it reached.
func (a *App) learn(ctx context.Context, f *runFlags, args []string, to string, changed func(string) bool) error {
	for _, name := range []string{"allow", "deny", "secret"} {
		if changed(name) && (name != "allow" || !addressesOnly(f.allow)) {
			return WithHint(fmt.Errorf("--%s: while it learns, the command can reach everything that is public: %w", name, paddock.Invalid), "leave it out, and change the file afterwards; --allow with an address that is not public is the exception")
		}
	}
	l := newLessons()
	f.amend = func(p *plan) error {
		if p.file != nil && p.file.Network.Mode != "" {
			return WithHint(fmt.Errorf("%s: it has rules of its own: %w", p.file.Where("network"), paddock.Invalid), "take its network away to learn one")
		}
		l.open(p)
		return nil
	}
	out := &resultFile{to: a.Stdout, close: func() error { return nil }}
	runner := *a
	if to == "" {
		runner.Stdout = a.Stderr
	} else {
		file, err := openIn(filepath.Dir(to), filepath.Base(to), os.O_EXCL)
		switch {
		case errors.Is(err, fs.ErrExist):
			return WithHint(fmt.Errorf("-o %s: it is there already: %w", to, paddock.Exists), "choose another name")
		case err != nil:
			return WithHint(fmt.Errorf("-o: %w: %w", err, paddock.Denied), "is the directory there, and writable?")
		}
		out = &resultFile{to: file, close: file.Close}
	}
	fmt.Fprintln(a.Stderr, "paddock: learning: while it runs, the command can reach everything that is public")
	r := &result{}
	err := runner.runIn(ctx, f, args, changed, r)
	if r.ID == "" { // there was no sandbox
		err = errors.Join(err, out.close())
		if to != "" {
			err = errors.Join(err, os.Remove(to))
		}
		return err
	}
	text, wrong := l.policy(args)
	if wrong == nil {
		_, wrong = out.to.Write(text)
	}
	if wrong = errors.Join(wrong, out.close()); wrong != nil {
		return fmt.Errorf("write the policy: %w", wrong)
	}
	if to != "" {
		fmt.Fprintf(a.Stderr, "paddock: %s: %s; read it before you use it\n", OneLine(to), Plural(len(l.reached), "destination was reached", "destinations were reached"))
	}
	return err
}

// maxLessons bounds what is learned, in destinations reached and refused each; a
// policy file has no more rules, and a rule no more ports.
const maxLessons = 1000

// A destination is what a rule is about.
type destination struct {
	host decide.Host
	port uint16
	udp  bool
}

// Lessons are what a command reached, and what it could not.
type lessons struct {
	mu      sync.Mutex
	reached map[destination]bool  // guarded by mu
	refused map[string]string     // guarded by mu: why, by what
	listed  map[netip.Addr]string // guarded by mu: a name that leads to an address which is not public
	more    bool                  // guarded by mu: there was more than is kept
}

func newLessons() *lessons {
	return &lessons{reached: map[destination]bool{}, refused: map[string]string{}, listed: map[netip.Addr]string{}}
}

// addressesOnly reports whether each destination of --allow is an address or a range.
func addressesOnly(flags []string) bool {
	for _, text := range flags {
		list, err := destinations(text, false, nil)
		if err != nil {
			return false
		}
		for _, r := range list {
			if !isAddress(r) {
				return false
			}
		}
	}
	return true
}

func isAddress(r paddock.NetworkRule) bool {
	_, err := netip.ParsePrefix(r.Host)
	_, one := netip.ParseAddr(r.Host)
	return err == nil || one == nil
}

// public reports whether an address can be reached without a rule that lists it.
func public(a netip.Addr) bool {
	return decide.CheckAddress(a, func(netip.Addr) bool { return false }) == nil
}

// open lets the plan's command reach what is public, and the addresses that --allow names, and listens. A
// rule for all hosts is about web servers; other ports are asked for, and allowed each time.
func (l *lessons) open(p *plan) {
	own := p.spec.Policy.Network.Rules
	p.spec.Policy.Network = paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: append([]paddock.NetworkRule{{Host: "*"}, {Host: "*", UDP: true}}, own...)}
	p.spec.Policy.Audit = []paddock.AuditKind{paddock.AuditNetwork}
	p.audit = l
	p.ask = func(_ context.Context, q gatewayclient.Question) gatewayclient.Answer {
		addr, err := netip.ParseAddr(q.Host)
		if err == nil && !public(addr) {
			return gatewayclient.AnswerDeny // an answer would list the address, and what is listed may be private
		}
		return gatewayclient.AnswerOnce
	}
}

// Record implements audit.Sink.
func (l *lessons) Record(e audit.Event) {
	if e.Kind != audit.Network || e.Network == nil {
		return
	}
	n := *e.Network
	l.mu.Lock()
	defer l.mu.Unlock()
	if n.Verdict != gatewayclient.VerdictAllow {
		target := n.Host
		if n.Port != 0 {
			target = net.JoinHostPort(n.Host, strconv.Itoa(int(n.Port)))
		}
		if _, known := l.refused[target]; !known && len(l.refused) >= maxLessons {
			l.more = true
			return
		}
		l.refused[target] = n.Reason
		return
	}
	host, err := decide.ParseHost(n.Host)
	if err != nil || n.Port == 0 {
		return // a lookup; what was looked up to be reached is told by itself
	}
	d := destination{host, n.Port, n.Protocol == gatewayclient.KindUDP}
	if !l.reached[d] && len(l.reached) >= maxLessons {
		l.more = true
		return
	}
	l.reached[d] = true
	if a, err := netip.ParseAddr(n.Address); err == nil && !public(a) && len(l.listed) < maxLessons {
		if _, named := host.Addr(); !named {
			l.listed[a] = host.String()
		}
	}
}

// policy writes the file. What it makes is read again, so that it is never one
// that paddock run refuses.
func (l *lessons) policy(args []string) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	var b strings.Builder
	fmt.Fprintf(&b, "# What this command reached with an open way out; made by `paddock policy learn`:\n#   %s\n", OneLine(strings.Join(args, " ")))
	fmt.Fprintln(&b, "# It may have reached what it should not: read every line before you use it.")
	if l.more {
		fmt.Fprintln(&b, "# There was more than is listed here.")
	}
	fmt.Fprint(&b, "version: 1\nnetwork:\n  mode: list\n")
	if len(l.reached) > 0 {
		fmt.Fprintln(&b, "  rules:")
	}
	domain := ""
	for _, r := range l.rules() {
		if d := domainOf(r.host); d != domain {
			domain = d
			fmt.Fprintf(&b, "    # %s\n", d)
		}
		fmt.Fprintf(&b, "    - allow: %q\n", r.host.String())
		if r.udp && r.ports != "443" || !r.udp && r.ports != "80, 443" { // what a rule is about without any
			fmt.Fprintf(&b, "      ports: [%s]\n", r.ports)
		}
		if r.udp {
			fmt.Fprintln(&b, "      udp: true")
		}
	}
	if len(l.listed) > 0 {
		fmt.Fprintln(&b, "    # addresses that are not public, to which names lead")
	}
	for _, a := range slices.SortedFunc(maps.Keys(l.listed), netip.Addr.Compare) {
		fmt.Fprintf(&b, "    - allow: %q # %s\n", a.String(), l.listed[a])
	}
	if len(l.refused) > 0 {
		fmt.Fprintln(&b, "# Refused, though the way out was open:")
	}
	for _, target := range slices.Sorted(maps.Keys(l.refused)) {
		fmt.Fprintf(&b, "#   %s: %s\n", OneLine(target), OneLine(l.refused[target]))
	}
	text := []byte(b.String())
	if _, err := policy.Read("the policy", text); err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Internal)
	}
	return text, nil
}

// A learned is a rule of the file.
type learned struct {
	host  decide.Host
	ports string
	udp   bool
}

// rules are one for each host, of connections and of datagrams; hosts of one
// domain stand together.
func (l *lessons) rules() []learned {
	ports := map[destination][]uint16{}
	for d := range l.reached {
		key := destination{host: d.host, udp: d.udp}
		ports[key] = append(ports[key], d.port)
	}
	var list []learned
	for key, numbers := range ports {
		slices.Sort(numbers)
		texts := make([]string, len(numbers))
		for i, n := range numbers {
			texts[i] = strconv.Itoa(int(n))
		}
		list = append(list, learned{key.host, strings.Join(texts, ", "), key.udp})
	}
	slices.SortFunc(list, func(a, b learned) int {
		return cmp.Or(strings.Compare(domainOf(a.host), domainOf(b.host)), strings.Compare(a.host.String(), b.host.String()), strings.Compare(a.ports, b.ports))
	})
	return list
}

// domainOf gives the last two labels of a name: for the eye alone, so that no
// list of the world's registries is needed.
func domainOf(h decide.Host) string {
	if _, ok := h.Addr(); ok {
		return "addresses"
	}
	labels := strings.Split(h.String(), ".")
	return strings.Join(labels[max(0, len(labels)-2):], ".")
}
