package guest_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/guest/guesttest"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
)

// asGuest makes this test binary an agent in a process of its own; its value
// is how many files it may open, or zero.
const asGuest = "PADDOCK_TEST_GUEST"

func TestMain(m *testing.M) {
	if files := os.Getenv(asGuest); files != "" {
		if err := beGuest(files); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// beGuest serves descriptor 3 as process 1 would: orphans become its children.
func beGuest(files string) error {
	const setChildSubreaper = 36
	if _, _, errno := syscall.Syscall(syscall.SYS_PRCTL, setChildSubreaper, 1, 0); errno != 0 {
		return errno
	}
	if n, err := strconv.ParseUint(files, 10, 64); err != nil {
		return err
	} else if n > 0 {
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: n, Max: n}); err != nil {
			return err
		}
	}
	conn, err := net.FileConn(os.NewFile(3, "host"))
	if err != nil {
		return err
	}
	s, err := guest.New(guest.Options{Init: true, Dir: "/", Env: map[string]string{"PATH": os.Getenv("PATH")}})
	if err != nil {
		return err
	}
	_ = s.Serve(context.Background(), conn)
	return s.Close()
}

// apart gives a guest in a process of its own.
func apart(t *testing.T, files int) (*guestclient.Guest, int) {
	t.Helper()
	host, inside := guesttest.Pair(t)
	f, err := inside.(*net.UnixConn).File()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), asGuest+"="+strconv.Itoa(files))
	cmd.ExtraFiles, cmd.Stderr = []*os.File{f}, os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = f.Close()
	_ = inside.Close()
	g, err := guestclient.New(host, guestclient.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = g.Close()
		if err := cmd.Wait(); err != nil {
			t.Errorf("the agent ended with %v", err)
		}
	})
	return g, cmd.Process.Pid
}

func limit(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func run(t *testing.T, g *guestclient.Guest, script string) (string, paddock.Exit) {
	t.Helper()
	var out strings.Builder
	p, err := g.Start(limit(t), paddock.Cmd{Args: []string{"/bin/sh", "-c", script}, Output: paddock.Output{Stdout: &out}})
	if err != nil {
		t.Fatal(err)
	}
	exit, err := p.Wait(limit(t))
	if err != nil {
		t.Fatal(err)
	}
	return out.String(), exit
}

// dead tells whether pid waits to be reaped by parent.
func dead(t *testing.T, pid, parent int) bool {
	t.Helper()
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	defer f.Close()
	zombie, ours := false, false
	for lines := bufio.NewScanner(f); lines.Scan(); {
		zombie = zombie || strings.HasPrefix(lines.Text(), "State:\tZ")
		ours = ours || lines.Text() == fmt.Sprintf("PPid:\t%d", parent)
	}
	return zombie && ours
}

func TestAsProcessOneItReapsEveryOrphan(t *testing.T) {
	g, parent := apart(t, 0)
	// Orphans that end after their parent has, each with a code that is not
	// that of any command.
	out, exit := run(t, g, `for i in 1 2 3 4 5; do setsid sh -c "echo \$\$; exec >&-; read x < /proc/sys/kernel/hostname; exit 77" & done; exit 5`)
	orphans := strings.Fields(out)
	if exit.Code != 5 || len(orphans) == 0 {
		t.Fatalf("%+v, orphans %v", exit, orphans)
	}
	for i := range 200 {
		code := i % 120
		if _, exit := run(t, g, fmt.Sprintf("sleep 0 & exit %d", code)); exit.Code != code {
			t.Fatalf("command %d ended with %+v", i, exit)
		}
	}
	for _, o := range orphans {
		pid, err := strconv.Atoi(o)
		if err != nil {
			t.Fatal(err)
		}
		if dead(t, pid, parent) {
			t.Errorf("process %d was not reaped", pid)
		}
	}
}

func TestAsProcessOneAProgramThatCannotStartIsReaped(t *testing.T) {
	g, _ := apart(t, 0)
	for range 50 {
		var start *paddock.StartError
		if _, err := g.Start(limit(t), paddock.Cmd{Args: []string{"/etc/passwd"}}); !errors.As(err, &start) || start.Code != 126 {
			t.Fatal(err)
		}
		if _, exit := run(t, g, "exit 8"); exit.Code != 8 {
			t.Fatal(exit)
		}
	}
}

func TestWithoutDescriptorsItRefusesAndLivesOn(t *testing.T) {
	g, _ := apart(t, 64)
	var all []paddock.Process
	for {
		p, err := g.Start(limit(t), paddock.Cmd{Args: []string{"cat"}, Input: true})
		if err != nil {
			if !errors.Is(err, paddock.Exhausted) || !strings.Contains(err.Error(), "open files") {
				t.Errorf("it answers %v", err)
			}
			break
		}
		if all = append(all, p); len(all) > 64 {
			t.Fatal("64 descriptors are enough for 64 processes")
		}
	}
	if len(all) < 5 {
		t.Errorf("only %d processes were started", len(all))
	}
	for _, p := range all {
		if err := p.Input().Close(); err != nil {
			t.Fatal(err)
		}
		if exit, err := p.Wait(limit(t)); err != nil || exit.Code != 0 {
			t.Errorf("%+v, %v", exit, err)
		}
	}
	if _, exit := run(t, g, "exit 4"); exit.Code != 4 {
		t.Errorf("afterwards a command ends with %+v", exit)
	}
}
