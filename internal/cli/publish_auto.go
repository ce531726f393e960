package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// Values of --publish that are no ports.
const (
	publishAuto = "auto" // what begins to listen inside
	publishNone = "none" // not even that
)

const (
	watchPause = time.Second
	// watchMost bounds the ports that are published by themselves at a time, and watchTold how many are told in all. A
	// sandbox chooses the numbers, so both are few.
	watchMost = 8
	watchTold = 24
	// watchGone is how often in a row a port is missed until this machine gives it free.
	watchGone = 3
	// tableMost bounds what is read of a table of sockets.
	tableMost = 256 << 10
	// unprivileged is the first port that is published by itself.
	unprivileged = 1024
)

// A portWatch publishes the ports at which something inside begins to listen.
type portWatch struct {
	all     *publishing
	app     *App
	sandbox paddock.Sandbox
	line    string             // what ends a line on the screen
	asked   map[int]bool       // ports that are published by name, or cannot be by themselves
	at      map[int]*foundPort // by port inside
	before  map[int]int        // the port of this machine that one inside had
	listen  func(publication) (*published, error)
	told    int
	full    bool
}

// A foundPort is a port that was published by itself.
type foundPort struct {
	*published
	absent int // looks at which nothing listened
}

// splitPublish takes the words from the values of --publish. auto is what holds without one.
func splitPublish(values []string, auto bool) ([]string, bool, error) {
	ports := slices.DeleteFunc(slices.Clone(values), func(v string) bool { return v == publishAuto || v == publishNone })
	none, some := slices.Contains(values, publishNone), slices.Contains(values, publishAuto)
	if none && some {
		return nil, false, WithHint(fmt.Errorf("--publish %s and --publish %s contradict each other: %w", publishAuto, publishNone, paddock.Invalid), "leave one out")
	}
	return ports, some || auto && !none, nil
}

// watch publishes until the end of the command.
func (w *portWatch) watch(ctx context.Context) {
	for pause(ctx, watchPause) {
		if found, ok := w.look(ctx); ok {
			w.settle(found)
		}
	}
	for _, p := range w.at {
		p.refuse()
	}
}

// look returns the ports at which something listens inside, by the sandbox's own tables. What they say is the sandbox's word:
// a port is a number that it chose.
func (w *portWatch) look(ctx context.Context) (map[int]bool, bool) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	found, some := map[int]bool{}, false
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		r, err := w.sandbox.FS().Open(ctx, name, paddock.OpenOptions{})
		if err != nil {
			continue // there may be no IPv6, and a sandbox that is gone has none of them
		}
		stop := context.AfterFunc(ctx, func() { r.Close() })
		text, err := io.ReadAll(io.LimitReader(r, tableMost))
		if stop() {
			r.Close()
		}
		if err == nil {
			some = true
			listening(text, found)
		}
	}
	return found, some
}

// settle publishes what is new, and gives free what is gone.
func (w *portWatch) settle(found map[int]bool) {
	for port, p := range w.at {
		if p.absent++; found[port] {
			p.absent = 0
		}
		if p.absent >= watchGone {
			p.refuse()
			delete(w.at, port)
		}
	}
	for _, port := range slices.Sorted(maps.Keys(found)) {
		if w.at[port] != nil || w.asked[port] || port < unprivileged {
			continue
		}
		_, again := w.before[port]
		if len(w.at) >= watchMost || !again && w.told >= watchTold {
			if !w.full {
				w.full = true
				w.say("more ports of the sandbox than are published by themselves are listened at: --publish PORT publishes one")
			}
			continue
		}
		w.publish(port)
	}
}

// publish publishes a port as the same one of this machine, or as another one where that is taken or where programs of this
// machine would take what answers there for a service of theirs.
func (w *portWatch) publish(port int) {
	local, again := w.before[port]
	if !again && !isService(port) {
		local = port
	}
	one, err := w.listen(publication{local: local, port: port})
	if err != nil && local != 0 {
		one, err = w.listen(publication{port: port})
	}
	if err != nil {
		w.asked[port] = true // it is tried once
		w.say(fmt.Sprintf("port %d of the sandbox cannot be published: %v", port, err))
		return
	}
	one.site = true
	if at, ok := one.listeners[0].Addr().(*net.TCPAddr); ok {
		one.local = at.Port
	}
	w.at[port] = &foundPort{published: one}
	for _, l := range one.listeners {
		w.all.accepting.Go(func() { w.all.accept(l, one, w.sandbox) })
	}
	if again && one.local == local {
		return // it was told
	}
	w.before[port] = one.local
	w.told++
	w.say(fmt.Sprintf("port %d of the sandbox is at http://localhost:%d", port, one.local))
}

func (w *portWatch) say(text string) { fmt.Fprintf(w.app.Stderr, "paddock: %s%s", text, w.line) }

// refuse lets go of the port.
func (p *published) refuse() {
	for _, l := range p.listeners {
		l.Close()
	}
}

// isService reports whether programs connect to a port of this machine without a person who asks for it, and then tell
// passwords or obey: servers of data, proxies, collectors, and the debuggers that a program calls. A sandbox that listens
// there gets another number.
func isService(port int) bool {
	return slices.Contains([]int{
		1025, 1080, 1087, 1433, 1521, 1883, 2049, 2181, 2375, 2376, 2377, 2379, 2380, 3128, 3306, 3389, 4222, 4317, 4318, 5005, 5037, 5432, 5672, 5900,
		5984, 5985, 6000, 6379, 6443, 7687, 7890, 8086, 8118, 8125, 8200, 8500, 8883, 9003, 9042, 9050, 9092, 9150, 9200, 9222, 9229, 9411, 10250, 10808,
		10809, 11211, 11434, 14268, 15672, 16443, 19530, 24224, 26257, 27017, 33060, 50051,
	}, port)
}

// listening adds the ports at which something listens, at loopback or everywhere, by a table of sockets as the kernel writes
// it. The text is the sandbox's.
func listening(table []byte, to map[int]bool) {
	for line := range bytes.Lines(table) {
		f := strings.Fields(string(line))
		if len(f) < 4 || f[3] != "0A" {
			continue
		}
		addr, number, ok := strings.Cut(f[1], ":")
		port, err := strconv.ParseUint(number, 16, 16)
		if !ok || err != nil || port == 0 || !fromLoopback(addr) {
			continue
		}
		to[int(port)] = true
	}
}

// fromLoopback reports whether a connection from loopback comes to a listener at this address, in words of the host's order.
func fromLoopback(addr string) bool {
	const nothing, mapped, one = "00000000", "FFFF0000", "01000000"
	switch len(addr) {
	case 8:
		return addr == nothing || strings.HasSuffix(addr, "7F")
	case 32:
		head, tail := addr[:24], addr[24:]
		zeros := strings.Repeat(nothing, 3)
		return head == zeros && (tail == nothing || tail == one) || head == strings.Repeat(nothing, 2)+mapped && strings.HasSuffix(tail, "7F")
	}
	return false
}
