package guest

import (
	"bytes"
	"os"
	"strconv"
	"syscall"
)

// killRounds bounds the search for processes that multiply while they are
// looked for. Each round stops what it finds, so the second one that finds
// nothing new is the usual last.
const killRounds = 64

// killAll kills a process that leads a session, its group, its session and all
// descendants. They are stopped first: what is stopped cannot fork, and a
// descendant whose parent is dead can no longer be told from others.
// Send is how they are sent signals.
func killAll(pid int, send func(pid int, sig syscall.Signal) error) {
	found := map[int]bool{}
	for range killRounds {
		fresh := false
		for _, other := range family(pid) {
			if !found[other] {
				found[other], fresh = true, true
				_ = send(other, syscall.SIGSTOP)
			}
		}
		if !fresh {
			break
		}
	}
	_ = send(-pid, syscall.SIGKILL) // also where there is no /proc
	for other := range found {
		_ = send(other, syscall.SIGKILL)
	}
	for range killRounds {
		rest := family(pid)
		if len(rest) == 0 {
			return
		}
		for _, other := range rest {
			_ = send(other, syscall.SIGKILL)
		}
	}
}

// family finds the living processes of a session or process group and all
// descendants of its leader.
func family(pid int) []int {
	all := stats()
	in := map[int]bool{pid: true}
	for grown := true; grown; {
		grown = false
		for _, st := range all {
			if !in[st.pid] && (st.session == pid || st.group == pid || in[st.parent]) {
				in[st.pid], grown = true, true
			}
		}
	}
	var out []int
	for _, st := range all {
		if in[st.pid] && !st.dead && st.pid != os.Getpid() {
			out = append(out, st.pid)
		}
	}
	return out
}

type stat struct {
	pid, parent, group, session int
	dead                        bool // waits to be reaped
}

// stats reads /proc. Where it cannot be read there is nothing.
func stats() []stat {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1)
	var out []stat
	for _, name := range names {
		if name[0] < '0' || name[0] > '9' {
			continue
		}
		line, err := os.ReadFile("/proc/" + name + "/stat")
		if err != nil {
			continue // gone meanwhile
		}
		if st, ok := parseStat(line); ok {
			out = append(out, st)
		}
	}
	return out
}

// parseStat reads a line of /proc/PID/stat: the name of the program, which
// may hold anything, ends at the last parenthesis.
func parseStat(line []byte) (stat, bool) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 1 || end < open {
		return stat{}, false
	}
	rest := bytes.Fields(line[end+1:])
	if len(rest) < 4 {
		return stat{}, false
	}
	var n [4]int
	for i, f := range [][]byte{line[:open-1], rest[1], rest[2], rest[3]} {
		v, err := strconv.Atoi(string(f))
		if err != nil {
			return stat{}, false
		}
		n[i] = v
	}
	state := rest[0][0]
	return stat{n[0], n[1], n[2], n[3], state == 'Z' || state == 'X'}, true
}
