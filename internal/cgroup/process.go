package cgroup

import (
	"bytes"
	"errors"
	"strconv"
)

// What follows reads files of /proc that describe a guest's processes. The
// guest chooses parts of them (a process may be named ") R 1 1\n"), so each
// number is looked for where the kernel, not the guest, put it.

var errMalformed = errors.New("malformed")

// A stat is what is needed of /proc/PID/stat.
type stat struct {
	pid     int
	state   byte
	parent  int
	ticks   uint64 // user and system, its own
	waited  uint64 // the same of children that it has waited for
	threads int
	start   uint64 // ticks since boot; with the number it identifies a process
}

// dead tells that the process holds no memory and runs no more; where other
// threads go on without their leader it is true as well.
func (s stat) dead() bool { return s.state == 'Z' || s.state == 'X' || s.state == 'x' }

// parseStat reads /proc/PID/stat. The name, the second field, is the only one
// the guest chooses: it ends at the last parenthesis of the line.
func parseStat(b []byte) (stat, error) {
	open, end := bytes.IndexByte(b, '('), bytes.LastIndexByte(b, ')')
	if open < 2 || end < open || b[open-1] != ' ' {
		return stat{}, errMalformed
	}
	pid, ok := number(b[:open-1])
	if !ok || pid == 0 || pid > 1<<30 {
		return stat{}, errMalformed
	}
	f := bytes.Fields(b[end+1:])
	if len(f) < 20 || len(f[0]) != 1 {
		return stat{}, errMalformed
	}
	// Numbers as in proc(5), counted from the state, which is field 3.
	field := func(n int) uint64 {
		v, good := number(f[n-3])
		ok = ok && good
		return v
	}
	s := stat{pid: int(pid), state: f[0][0]}
	parent, threads := field(4), field(20)
	s.ticks = field(14) + field(15)
	s.waited = field(16) + field(17)
	s.start = field(22)
	if !ok || parent > 1<<30 || threads > 1<<30 {
		return stat{}, errMalformed
	}
	s.parent, s.threads = int(parent), int(threads)
	return s, nil
}

// number reads an unsigned decimal number below 2^62, so that two can be added.
func number(b []byte) (uint64, bool) {
	if len(b) == 0 || len(b) > 19 {
		return 0, false
	}
	var v uint64
	for _, c := range b {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + uint64(c-'0')
	}
	return v, v < 1<<62
}

// parseStatm gives the resident pages in /proc/PID/statm.
func parseStatm(b []byte) (pages int64, err error) {
	f := bytes.Fields(b)
	if len(f) < 2 {
		return 0, errMalformed
	}
	v, ok := number(f[1])
	if !ok || v > 1<<48 {
		return 0, errMalformed
	}
	return int64(v), nil
}

// parseRollup gives the proportional set size in /proc/PID/smaps_rollup, in
// bytes: shared pages are divided among those who share them.
func parseRollup(b []byte) (int64, error) {
	for line := range bytes.Lines(b) {
		rest, ok := bytes.CutPrefix(line, []byte("Pss:"))
		if !ok {
			continue
		}
		f := bytes.Fields(rest)
		if len(f) != 2 || string(f[1]) != "kB" {
			return 0, errMalformed
		}
		v, ok := number(f[0])
		if !ok || v > 1<<50 {
			return 0, errMalformed
		}
		return int64(v) << 10, nil
	}
	return 0, errMalformed
}

// parsePIDs reads numbers apart by white space, as in cgroup.procs and in
// /proc/PID/task/TID/children. Zero, which stands for a process of another pid
// namespace, is kept.
func parsePIDs(b []byte) ([]int, error) {
	var pids []int
	for f := range bytes.FieldsSeq(b) {
		v, ok := number(f)
		if !ok || v > 1<<30 {
			return nil, errMalformed
		}
		pids = append(pids, int(v))
	}
	return pids, nil
}

// parseKey gives the number after a key in a flat keyed file ("oom_kill 3").
func parseKey(b []byte, key string) (int64, bool) {
	for line := range bytes.Lines(b) {
		f := bytes.Fields(line)
		if len(f) == 2 && string(f[0]) == key {
			v, ok := number(f[1])
			return int64(v), ok
		}
	}
	return 0, false
}

// parseCount reads a file of one number. "max" is no number.
func parseCount(b []byte) (int64, error) {
	v, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	if err != nil || v < 0 {
		return 0, errMalformed
	}
	return v, nil
}
