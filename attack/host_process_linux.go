package attack

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/attack/target"
)

// hostHealthy is the host's part of P22.
func hostHealthy(x *trial) []target.Try {
	ctx, cancel := x.brief(time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, x.w.brief.Self, "whoami").CombinedOutput(); err != nil {
		return []target.Try{reached("the host afterwards", "it cannot start a program: %v: %s", err, out)}
	}
	p, err := x.sb.Start(ctx, paddock.Cmd{Args: []string{x.w.brief.Self, "whoami"}, Output: paddock.Output{Detached: true}})
	if err == nil {
		_, err = p.Wait(ctx)
	}
	if err != nil {
		return []target.Try{inside("the sandbox afterwards", "it cannot start a program: %v", err)}
	}
	return []target.Try{inside("the sandbox afterwards", "it starts programs")}
}

// order is what the maker of A23 is told.
type order struct {
	State string
	Brief target.Brief
	Place string
}

// up is what the maker prints when its sandbox runs.
const up = "the sandbox runs"

// killMaker is A23: another process makes a sandbox with daemons in it, and is
// killed.
func killMaker(x *trial) []target.Try {
	calm := filepath.Join(x.w.brief.State, "calm")
	killed := filepath.Join(x.w.brief.State, "killed")
	if err := errors.Join(os.Mkdir(calm, 0o700), os.Mkdir(killed, 0o700)); err != nil {
		return []target.Try{broken("prepare", err)}
	}
	// What a driver leaves in its directory in the ordinary course of life.
	ordinary, err := x.live(calm)
	if err != nil {
		return []target.Try{broken("an ordinary life", err)}
	}
	kill, err := x.maker(killed)
	if err != nil {
		return []target.Try{broken("make", err)}
	}
	if len(x.w.processes()) == 0 {
		kill()
		return []target.Try{broken("make", errors.New("no process of the sandbox can be seen, so none could be missed"))}
	}
	kill()
	var tries []target.Try
	gone := eventually(10*time.Second, func() bool { return len(x.w.processes()) == 0 })
	if gone {
		tries = append(tries, target.Try{Name: "processes", Outcome: target.Denied, Errno: "killed", Detail: "all are gone"})
	} else {
		tries = append(tries, reached("processes", "%s", strings.Join(x.w.processes(), "; ")))
	}
	if now, err := mounts(); err != nil || now != x.w.mounts {
		tries = append(tries, reached("mounts", "the mounts of the host changed"))
	}
	// The next driver finds nothing, and tidies what the dead one left.
	after, err := x.live(killed)
	if err != nil {
		return append(tries, reached("next driver", "%v", err))
	}
	if after > ordinary {
		tries = append(tries, reached("files", "%d files are left in place of %d: %s", after, ordinary, strings.Join(tree(killed), " ")))
	} else {
		tries = append(tries, target.Try{Name: "files", Outcome: target.Denied, Errno: "removed", Detail: "none is left"})
	}
	return tries
}

// live opens a driver, makes and removes a sandbox, closes the driver, and
// counts the files it leaves.
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
		if sb, err = d.Create(ctx, x.spec()); err == nil {
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

// maker starts the maker and answers how to kill it, when its sandbox runs.
func (x *trial) maker(state string) (func(), error) {
	data, err := json.Marshal(order{State: state, Brief: x.w.brief, Place: x.w.brief.Place})
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	top, _, _ := strings.Cut(x.t.Name(), "/")
	cmd := exec.Command(self, "-test.run=^"+top+"$", "-test.timeout=10m")
	cmd.Env = append(os.Environ(), envMaker+"="+string(data))
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	kill := func() {
		_ = cmd.Process.Kill()
		_ = in.Close()
		_ = cmd.Wait()
	}
	var seen strings.Builder
	for sc := bufio.NewScanner(out); sc.Scan(); {
		if strings.Contains(sc.Text(), up) {
			return kill, nil
		}
		seen.WriteString(sc.Text() + "\n")
	}
	kill()
	return nil, fmt.Errorf("the maker ended: %s", seen.String())
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
	if x.info, err = x.driver.Info(t.Context()); err != nil {
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
