//go:build unix

package storetest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// A Postgres is a PostgreSQL server on its own socket, for one test.
type Postgres struct {
	bin, dir string
	who      *syscall.Credential // nil is the caller; the server refuses to run as root
	cmd      *exec.Cmd
	ended    chan struct{} // closed when cmd has ended

	mu   sync.Mutex
	made int // guarded by mu; number of databases
}

// patience bounds the start of the server.
const patience = 2 * time.Minute

// StartPostgres starts a server, or skips the test if PostgreSQL is not installed.
func StartPostgres(t *testing.T) *Postgres {
	t.Helper()
	p := &Postgres{bin: programs()}
	if p.bin == "" {
		t.Skip("PostgreSQL is not installed: no initdb in PATH or below /usr/lib/postgresql")
	}
	// Not t.TempDir, because its paths are too long for a Unix socket, and other users
	// cannot enter it.
	dir, err := os.MkdirTemp("", "pg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Errorf("remove the database: %v", err)
		}
	})
	p.dir = dir
	if os.Geteuid() == 0 {
		p.who = nobody(t)
		if err := os.Chown(dir, int(p.who.Uid), int(p.who.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	out, err := p.command("initdb", "-D", p.data(), "-A", "trust", "-U", "paddock", "-E", "UTF8", "--no-locale", "--no-sync").CombinedOutput()
	if err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	p.Start(t)
	t.Cleanup(func() { p.end(t, syscall.SIGINT) })
	return p
}

// programs returns the directory of the server's programs.
func programs() string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is valid
	slices.Sort(found)
	slices.Reverse(found)
	if path, err := exec.LookPath("initdb"); err == nil {
		if path, err = filepath.EvalSymlinks(path); err == nil {
			found = append(found, path)
		}
	}
	for _, path := range found {
		dir := filepath.Dir(path)
		if !slices.ContainsFunc([]string{"postgres", "psql"}, func(name string) bool {
			_, err := os.Stat(filepath.Join(dir, name))
			return err != nil
		}) {
			return dir
		}
	}
	return ""
}

func nobody(t *testing.T) *syscall.Credential {
	t.Helper()
	u, err := user.Lookup("nobody")
	if err != nil {
		t.Skipf("PostgreSQL does not run as root, and there is no other user: %v", err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

func (p *Postgres) data() string { return filepath.Join(p.dir, "data") }

func (p *Postgres) command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(p.bin, name), args...)
	cmd.Dir = p.dir
	cmd.Env = []string{"PATH=" + p.bin + ":/usr/bin:/bin", "LC_ALL=C", "HOME=" + p.dir}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: p.who}
	return cmd
}

// Start starts the server, also after [Postgres.Kill], and waits until it answers. It
// starts again if the server ends because processes of the killed one still hold its
// memory.
func (p *Postgres) Start(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	p.run(t)
	for {
		err := p.sql("SELECT 1")
		if err == nil {
			return
		}
		select {
		case <-p.ended:
			p.run(t)
		default:
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			said, _ := os.ReadFile(filepath.Join(p.dir, "log"))
			t.Fatalf("the server does not answer: %v\n%s", err, said)
		}
	}
}

// run starts the server's first process.
func (p *Postgres) run(t testing.TB) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(p.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := p.command("postgres", "-D", p.data(), "-k", p.dir, "-c", "listen_addresses=", "-c", "max_connections=90")
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { // ends with the process, which the test kills
		defer close(ended)
		_ = cmd.Wait() // it was killed
	}()
	p.cmd, p.ended = cmd, ended
}

// Kill ends the server like a crash: it writes nothing more.
func (p *Postgres) Kill(t testing.TB) {
	t.Helper()
	p.end(t, syscall.SIGKILL)
}

func (p *Postgres) end(t testing.TB, sig syscall.Signal) {
	t.Helper()
	if err := p.cmd.Process.Signal(sig); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	<-p.ended
}

// sql executes one statement.
func (p *Postgres) sql(text string) error {
	out, err := p.command("psql", "-h", p.dir, "-U", "paddock", "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-qc", text).CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Engine returns an engine with a database for each place.
func (p *Postgres) Engine() Engine {
	return Engine{"PostgreSQL", func(t testing.TB) string {
		t.Helper()
		p.mu.Lock()
		p.made++
		name := fmt.Sprintf("d%d", p.made)
		p.mu.Unlock()
		if err := p.sql("CREATE DATABASE " + name); err != nil {
			t.Fatal(err)
		}
		return "postgres:///" + name + "?host=" + p.dir + "&user=paddock&sslmode=disable"
	}}
}
