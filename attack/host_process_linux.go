package attack

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// hostHealthy is the host's part of P22.
func hostHealthy(x *trial) []protocol.Try {
	ctx, cancel := x.brief(time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, x.w.brief.Self, "whoami").CombinedOutput(); err != nil {
		return []protocol.Try{reached("the host afterwards", "it cannot start a program: %v: %s", err, out)}
	}
	args := []string{x.w.brief.Self, "whoami"}
	if x.h.Tier == paddock.Sim {
		args = []string{"whoami"}
	}
	p, err := x.sb.Start(ctx, paddock.Cmd{Args: args, Output: paddock.Output{Detached: true}})
	if err == nil {
		_, err = p.Wait(ctx)
	}
	if err != nil {
		return []protocol.Try{inside("the sandbox afterwards", "it cannot start a program: %v", err)}
	}
	tries := []protocol.Try{inside("the sandbox afterwards", "it starts programs")}
	if !x.h.Unconfined { // there nothing is limited, and nothing would end what share starts
		tries = append(tries, x.share(ctx))
	}
	return tries
}

// agentStands is the host's part of P36.
func agentStands(x *trial) []protocol.Try {
	ctx, cancel := x.brief(time.Minute)
	defer cancel()
	args := []string{x.w.brief.Self, "whoami"}
	if x.h.Tier == paddock.Sim {
		args = []string{"whoami"}
	}
	p, err := x.sb.Start(ctx, paddock.Cmd{Args: args, Output: paddock.Output{Detached: true}})
	var exit paddock.Exit
	if err == nil {
		exit, err = p.Wait(ctx)
	}
	if err != nil || exit.Cause != paddock.Exited {
		return []protocol.Try{reached("the sandbox afterwards", "it starts no program: %+v %v", exit, err)}
	}
	tries := []protocol.Try{inside("the sandbox afterwards", "it starts programs")}
	if x.h.Unconfined || x.h.Tier == paddock.Sim {
		return tries // there nothing refuses the write
	}
	st, err := x.sb.Status(ctx)
	told := slices.ContainsFunc(st.Refused, func(r paddock.Refusal) bool { return strings.HasSuffix(r.Target, protocol.RefusedFirst) })
	if err != nil || !told {
		return append(tries, reached("what was refused", "it is not told any more: %v", err))
	}
	return append(tries, inside("what was refused", "it is told"))
}

// share measures the processor time of two busy commands on the host. A sandbox's own
// kernel measures with a clock that also counts the time in which the host does not run it.
func (x *trial) share(ctx context.Context) protocol.Try {
	const name = "processor, as the host counts"
	limit := x.spec().Limits.CPUs
	if x.h.Tier == paddock.Sim || limit == 0 || limit >= float64(runtime.NumCPU()) {
		return protocol.Try{Name: name, Outcome: protocol.Absent, Detail: "there is no limit of the processor, or nothing that could pass it"}
	}
	before, err := x.sb.Status(ctx)
	if err != nil {
		return broken(name, err)
	}
	begun := time.Now()
	for range 2 {
		p, err := x.sb.Start(ctx, paddock.Cmd{Args: []string{"/bin/sh", "-c", "while :; do :; done"}, Timeout: 3 * time.Second, Output: paddock.Output{Detached: true}})
		if err != nil {
			return broken(name, err)
		}
		defer func() { _, _ = p.Wait(ctx) }()
	}
	select {
	case <-time.After(3 * time.Second):
	case <-ctx.Done():
	}
	after, err := x.sb.Status(ctx)
	if err != nil {
		return broken(name, err)
	}
	wall, used := time.Since(begun), after.Usage.CPU-before.Usage.CPU
	switch most := time.Duration(limit * float64(wall) * 1.5); {
	case before.Usage.CPU < 0 || after.Usage.CPU < 0:
		return broken(name, errors.New("the host does not know how much is used"))
	case used < most/20:
		return broken(name, fmt.Errorf("only %v was used in %v", used, wall))
	case used > most:
		return reached(name, "used %v of processor time in %v with %v processors", used.Round(time.Millisecond), wall.Round(time.Millisecond), limit)
	}
	return protocol.Try{Name: name, Outcome: protocol.Denied, Errno: "throttled", Detail: "got no more than its share"}
}

// order is the order to the maker of A23.
type order struct {
	State string
	Brief protocol.Brief
	Place string
}

// up is the output of the maker when its sandbox runs.
const up = "the sandbox runs"

// killMaker is A23: another process makes a sandbox with daemons in it, and is killed.
func killMaker(x *trial) []protocol.Try {
	calm := filepath.Join(x.w.brief.State, "calm")
	killed := filepath.Join(x.w.brief.State, "killed")
	if err := errors.Join(os.Mkdir(calm, 0o700), os.Mkdir(killed, 0o700)); err != nil {
		return []protocol.Try{broken("prepare", err)}
	}
	// What a driver normally leaves in its directory.
	ordinary, err := x.live(calm)
	if err != nil {
		return []protocol.Try{broken("an ordinary life", err)}
	}
	pid, kill, err := x.maker(killed)
	if err != nil {
		return []protocol.Try{broken("make", err)}
	}
	made := family(pid)
	if len(made)+len(x.w.processes()) == 0 {
		kill()
		if x.h.Inside {
			return []protocol.Try{{Name: "processes", Outcome: protocol.Absent, Detail: "there is no process but the one that was killed"}}
		}
		return []protocol.Try{broken("make", errors.New("no process of the sandbox can be seen, so none could be missed"))}
	}
	kill()
	var tries []protocol.Try
	enough := 10 * time.Second
	if x.h.Unconfined {
		enough = 2 * time.Second // nothing would end them later
	}
	gone := eventually(enough, func() bool { return len(x.w.processes()) == 0 && !slices.ContainsFunc(made, process.lives) })
	if gone {
		tries = append(tries, protocol.Try{Name: "processes", Outcome: protocol.Denied, Errno: "killed", Detail: "all are gone"})
	} else {
		tries = append(tries, reached("processes", "%s %v", strings.Join(x.w.processes(), "; "), made))
	}
	if now, err := mounts(); err != nil || now != x.w.mounts {
		tries = append(tries, reached("mounts", "the mounts of the host changed"))
	}
	// The next driver finds nothing, and removes what the dead one left.
	after, err := x.live(killed)
	if err != nil {
		return append(tries, reached("next driver", "%v", err))
	}
	if after > ordinary {
		tries = append(tries, reached("files", "%d files are left in place of %d: %s", after, ordinary, strings.Join(tree(killed), " ")))
	} else {
		tries = append(tries, protocol.Try{Name: "files", Outcome: protocol.Denied, Errno: "removed", Detail: "none is left"})
	}
	return tries
}

// live opens a driver, makes and removes a sandbox, closes the driver, and counts the files
// it leaves.
func (x *trial) live(state string) (int, error) {
	ctx, cancel := x.brief(patience)
	defer cancel()
	d := x.h.New(x.t, state)
	old, err := d.List(ctx)
	if err == nil && len(old) > 0 {
		err = fmt.Errorf("%d sandboxes of a dead maker are listed", len(old))
	}
	if err == nil {
		var sb paddock.Sandbox
		s := x.spec()
		x.fit(&s)
		if sb, err = d.Create(ctx, s); err == nil {
			err = sb.Remove(ctx)
		}
	}
	if err := errors.Join(err, d.Close()); err != nil {
		return 0, err
	}
	return len(tree(state)), nil
}

func tree(dir string) []string {
	var out []string
	_ = filepath.WalkDir(dir, func(p string, _ fs.DirEntry, err error) error {
		if err == nil {
			out = append(out, p)
		}
		return nil
	})
	return out
}

// A process is a process of the host, distinguished from a later one with the same PID.
type process struct{ pid, began string }

// stat returns a process's parent and start time.
func stat(pid string) (parent, began string) {
	data, err := os.ReadFile("/proc/" + pid + "/stat")
	f := strings.Fields(string(data[bytes.LastIndexByte(data, ')')+1:]))
	if err != nil || len(f) < 20 || f[0] == "Z" {
		return "", ""
	}
	return f[1], f[19]
}

func (p process) lives() bool {
	_, began := stat(p.pid)
	return began == p.began
}

// family returns the descendants of a process.
func family(pid int) []process {
	ents, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var found []process
	of := map[string]bool{strconv.Itoa(pid): true}
	for range ents { // a child may have a lower PID than its parent
		before := len(found)
		for _, e := range ents {
			if parent, began := stat(e.Name()); of[parent] && !of[e.Name()] {
				of[e.Name()] = true
				found = append(found, process{e.Name(), began})
			}
		}
		if len(found) == before {
			break
		}
	}
	return found
}

// maker starts the maker, and returns its PID and a function to kill it when its sandbox
// runs.
func (x *trial) maker(state string) (int, func(), error) {
	data, err := json.Marshal(order{State: state, Brief: x.w.brief, Place: x.w.brief.Place})
	if err != nil {
		return 0, nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, nil, err
	}
	top, _, _ := strings.Cut(x.t.Name(), "/")
	cmd := exec.Command(self, "-test.run=^"+top+"$", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), envMaker+"="+string(data))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return 0, nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, nil, err
	}
	if err := cmd.Start(); err != nil {
		return 0, nil, err
	}
	kill := func() {
		_ = cmd.Process.Kill()
		_ = in.Close()
		_ = cmd.Wait()
	}
	var seen strings.Builder
	for sc := bufio.NewScanner(out); sc.Scan(); {
		if strings.Contains(sc.Text(), up) {
			return cmd.Process.Pid, kill, nil
		}
		seen.WriteString(sc.Text() + "\n")
	}
	kill()
	return 0, nil, fmt.Errorf("the maker ended: %s", seen.String())
}

// make is the maker: it makes a sandbox with daemons and waits to be killed.
func (h Harness) make(t *testing.T) {
	var o order
	if err := json.Unmarshal([]byte(os.Getenv(envMaker)), &o); err != nil {
		t.Fatal(err)
	}
	var err error
	if h.techniques, err = list(t.Context(), o.Place); err != nil {
		t.Fatal(err)
	}
	w := &world{brief: o.Brief}
	x := &trial{t: t, c: Case{ID: "A23"}, w: w, h: h, driver: h.New(t, o.State)}
	if x.info, err = x.driver.Info(t.Context(), paddock.Auto); err != nil {
		t.Fatal(err)
	}
	if err := x.create(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := x.attack(t.Context()); err != nil {
		t.Fatal(err)
	}
	fmt.Println(up)
	_, _ = os.Stdin.Read(make([]byte, 1)) // until killed
}
