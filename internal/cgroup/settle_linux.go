package cgroup

import (
	"errors"
	"io/fs"
	"path"
	"strings"
)

// Settle returns what [Probe] does, for a process that starts others: it first makes the process's own
// group fit for groups with limits, because children that are in it would prevent that later.
//
// On version 2 the process may move to a group below its own one. Where its own group is the one of a
// login session, which nobody can divide, scope is called: it moves the process to a group of its own
// that can be divided. A nil scope is never called. What fails shows in the findings.
func Settle(scope func() error) *Host {
	return settle(Probe, scope)
}

func settle(probe func() *Host, scope func() error) *Host {
	h := probe()
	if scope != nil && h.inSession() {
		err := scope()
		if err == nil {
			h = probe()
		}
		h.scoped = err
	}
	if y := h.whole(); y != nil {
		if err := h.prepare(y); err != nil {
			y.withdraw(err)
		}
	}
	return h
}

// inSession tells whether this process has no limits because it is in the group of a login session, or of
// nothing that systemd runs. Such a process may have a scope. One of a service belongs where it is: the
// service's end would not be its own otherwise.
func (h *Host) inSession() bool {
	if h.Mode != V2 || !exists(h.env.run+"/systemd/system") || h.unit.service {
		return false
	}
	if h.bounded() {
		return false
	}
	_, err := h.find(memory)
	return errors.Is(err, errShared) || errors.Is(err, errForeign) || errors.Is(err, errNotGiven) || errors.Is(err, fs.ErrPermission)
}

// bounded tells whether somebody has set limits on the group that this process is in, which it is not to
// leave then.
func (h *Host) bounded() bool {
	for _, y := range h.hierarchies {
		for _, name := range [...]string{"/memory.max", "/memory.high", "/cpu.max"} {
			b, err := readFile(y.own+name, small)
			if err == nil && !strings.HasPrefix(string(b), "max") {
				return true
			}
		}
	}
	return false
}

// A unit is what systemd calls a service or a scope.
type unit struct {
	name    string // empty: none
	service bool
	user    bool // of the manager of a user
}

// unitOf finds the unit in the path of a group of version 2, such as
// /user.slice/user-1000.slice/user@1000.service/app.slice/work.scope. What a unit that divides its group
// calls a part of it is not a unit.
func unitOf(group string) (u unit) {
	for name := range strings.SplitSeq(path.Clean(group), "/") {
		service := strings.HasSuffix(name, ".service")
		switch {
		case service && strings.HasPrefix(name, "user@"):
			u = unit{user: true}
		case service, strings.HasSuffix(name, ".scope"):
			u.name, u.service = name, service
			return u
		}
	}
	return u
}
