package attack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// services lists the ports on which the host listens.
func services() []string {
	var list []string
	for _, name := range []string{"tcp", "tcp6", "udp", "udp6", "raw", "raw6"} {
		data, err := os.ReadFile("/proc/net/" + name)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			f := strings.Fields(line)
			const listens, unconnected = "0A", "07"
			if len(f) > 3 && (f[3] == listens || f[3] == unconnected) {
				list = append(list, name+" "+f[1])
			}
		}
	}
	slices.Sort(list)
	return list
}

// countServices is N23: the host's ports before there is a sandbox.
func countServices(w *world) error {
	w.services = services()
	return nil
}

// noService is N23: the host looks for a port that leads to the gateway.
func noService(x *trial) []protocol.Try {
	var tries []protocol.Try
	for _, s := range services() {
		// Without a sandbox, the careless gateway always exists.
		_, port, _ := strings.Cut(strings.TrimPrefix(s, "tcp "), ":")
		gateway := x.h.Unconfined && port == fmt.Sprintf("%04X", protocol.ProxyPort)
		if gateway || !slices.Contains(x.w.services, s) {
			tries = append(tries, reached("ports of the host", "there is %q", s))
		}
	}
	if len(tries) > 0 {
		return tries
	}
	return []protocol.Try{{Name: "ports of the host", Outcome: protocol.Denied, Errno: "none", Detail: "the gateway listens at none"}}
}

// gateways lists our gateway processes.
func gateways() []int {
	var list []int
	for _, p := range family(os.Getpid()) {
		line, err := os.ReadFile("/proc/" + p.pid + "/cmdline")
		if err != nil || !strings.HasPrefix(string(line), "paddock-gateway") {
			continue
		}
		if pid, err := strconv.Atoi(p.pid); err == nil {
			list = append(list, pid)
		}
	}
	return list
}

// beside is N24: one sandbox has the usual rules, and another tries to use them.
func beside(x *trial) []protocol.Try {
	first, err := x.box(nil)
	if err != nil {
		return []protocol.Try{broken("create", err)}
	}
	defer func() {
		if err := first.Remove(context.WithoutCancel(x.t.Context())); err != nil {
			x.extra = append(x.extra, "remove: "+err.Error())
		}
	}()
	// Look up its names, and pass its placeholder to the other.
	ctx, cancel := x.brief(time.Minute)
	defer cancel()
	holder, err := x.placeholder(ctx, first)
	if err != nil {
		return []protocol.Try{broken("placeholder", err)}
	}
	second, err := x.box(func(s *paddock.Spec) {
		s.Policy.Network = paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{{Host: protocol.Second, Ports: []uint16{80, 443}}}}
	})
	if err != nil {
		return []protocol.Try{broken("create another", err)}
	}
	x.w.brief.Alive, x.w.brief.Phase = protocol.Second, holder
	return x.attackIn(second, "")
}

// placeholder asks a sandbox for its placeholder of the secret.
func (x *trial) placeholder(ctx context.Context, sb paddock.Sandbox) (string, error) {
	if x.h.Unconfined {
		return x.w.secret, nil
	}
	var out strings.Builder
	p, err := sb.Start(ctx, paddock.Cmd{Args: []string{"bash", "-c", "printf %s \"$" + protocol.SecretEnv + "\""}, Output: paddock.Output{Stdout: &out}})
	if err != nil {
		return "", err
	}
	if _, err := p.Wait(ctx); err != nil {
		return "", err
	}
	if out.Len() < 16 || strings.Contains(out.String(), x.w.secret) {
		return "", fmt.Errorf("%q is no placeholder", out.String())
	}
	return out.String(), nil
}

// changeRules is N25: the rules change while connections are open.
func changeRules(x *trial) []protocol.Try {
	if x.h.Tier == paddock.Sim {
		return x.changeScripts()
	}
	sb, err := x.box(nil)
	if err != nil {
		return []protocol.Try{broken("create", err)}
	}
	done := make(chan []protocol.Try, 1)
	go func() { done <- x.attackIn(sb, "") }()
	if !eventually(40*time.Second, func() bool { return exists(filepath.Join(x.w.brief.Work, "held")) || len(done) > 0 }) {
		return append(<-done, broken("hold", errors.New("nothing was opened")))
	}
	if err := x.narrow(sb); err != nil {
		return append(<-done, broken("update", err))
	}
	if err := os.WriteFile(filepath.Join(x.w.brief.Work, "updated"), []byte("x"), 0o644); err != nil {
		return append(<-done, broken("update", err))
	}
	return <-done
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

// narrow removes everything about Allowed, and datagrams, from the rules.
func (x *trial) narrow(sb paddock.Sandbox) error {
	ctx, cancel := x.brief(30 * time.Second)
	defer cancel()
	policy := x.spec().Policy
	policy.Network.Rules = slices.DeleteFunc(policy.Network.Rules, func(r paddock.NetworkRule) bool {
		return r.Host == protocol.Allowed || r.Host == protocol.Datagrams
	})
	err := sb.Update(ctx, paddock.Update{Policy: &policy})
	if x.h.Unconfined && errors.Is(err, paddock.Unsupported) {
		return nil // nothing to update
	}
	return err
}

// killGateway is N26: many connections, and then the end of the gateway.
func killGateway(x *trial) []protocol.Try {
	sb, err := x.box(nil)
	if err != nil {
		return []protocol.Try{broken("create", err)}
	}
	defer func() {
		if err := sb.Remove(context.WithoutCancel(x.t.Context())); err != nil {
			x.extra = append(x.extra, "remove: "+err.Error())
		}
	}()
	ctx, cancel := x.brief(patience)
	defer cancel()
	before, err := x.guest(ctx, sb, x.c.ID)
	if err != nil {
		return []protocol.Try{broken("before", err)}
	}
	pids := gateways()
	if len(pids) == 0 && !x.h.Unconfined && !x.h.Inside {
		return append(before.Tries, broken("kill", errors.New("there is no gateway to be seen")))
	}
	for _, pid := range pids {
		if size := resident(pid); size > 256<<20 {
			before.Tries = append(before.Tries, reached("memory of the host", "the gateway holds %d bytes after the attack", size))
		}
		p, err := os.FindProcess(pid)
		if err == nil {
			err = p.Kill()
		}
		if err != nil {
			return append(before.Tries, broken("kill", err))
		}
	}
	if !eventually(10*time.Second, func() bool { return len(gateways()) == 0 }) {
		before.Tries = append(before.Tries, inside("gateway", "another was started"))
	}
	x.w.brief.Phase = killedPhase
	after, err := x.guest(ctx, sb, x.c.ID)
	if err != nil {
		return append(before.Tries, broken("after", err))
	}
	return append(before.Tries, after.Tries...)
}

// resident returns the resident memory of a process.
func resident(pid int) int64 {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	f := strings.Fields(string(data))
	if err != nil || len(f) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize())
}

// hostileToGateway is N34: the sandbox is told the gateway's PID, and the host searches for
// the secret where processes keep such data.
func hostileToGateway(x *trial) []protocol.Try {
	sb, err := x.box(nil)
	if err != nil {
		return []protocol.Try{broken("create", err)}
	}
	var tries []protocol.Try
	pids := gateways()
	for _, pid := range pids {
		x.w.brief.Gateway = pid
		for _, name := range []string{"environ", "cmdline"} {
			data, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", pid, name))
			if err == nil && strings.Contains(string(data), x.w.secret) {
				tries = append(tries, reached("the gateway's "+name, "the secret stands in it"))
			}
		}
	}
	if len(pids) == 0 && !x.h.Unconfined && !x.h.Inside {
		tries = append(tries, broken("gateway", errors.New("there is no gateway to be seen")))
	}
	return append(tries, x.attackIn(sb, "")...)
}
