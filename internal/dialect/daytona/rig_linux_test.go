package daytona_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
)

// The rig runs Daytona's own clients against `paddock serve`: every script in testdata/py and testdata/js, on each tier. It prints a line
// "kept: …" for each promise, and "BROKEN: …" for one that is not kept.

const rigKey = "e2b_00112233445566778899aabbccddeeff00112233"

// top is the top of the tree.
const top = "../../.."

const scriptTime = 3 * time.Minute // for what waits for nothing but answers

// needs gives the program and the clients, and skips where they are not there.
func needs(t *testing.T) (program, clients string) {
	t.Helper()
	abs, err := filepath.Abs(top)
	if err != nil {
		t.Fatal(err)
	}
	program, clients = abs+"/bin/paddock", abs+"/.tmp/sdk/daytona"
	for _, name := range []string{program, clients + ".txt", clients + "-js.txt"} {
		if _, err := os.Stat(name); err != nil {
			t.Skipf("%v: make build sdk", err)
		}
	}
	return program, clients
}

var pasted = regexp.MustCompile("(?ms)^<!-- test: daytona -->\n```sh\n(.*?)^```$.*?^<!-- output: daytona -->\n```text\n(.*?)^```$")

func TestTheDocumentsProgramForDaytonaWorks(t *testing.T) {
	_, clients := needs(t)
	text, err := os.ReadFile(top + "/docs/server/daytona.md")
	if err != nil {
		t.Fatal(err)
	}
	m := pasted.FindSubmatch(text)
	if m == nil {
		t.Fatal("docs/server/daytona.md has no program for Daytona")
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err := errors.Join(err, l.Close()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), scriptTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-eu", "-c", strings.ReplaceAll(string(m[1]), "7463", port)) // somebody may listen there
	cmd.Dir, cmd.WaitDelay = top, 5*time.Second
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "PYTHONPATH=" + clients, "PYTHONDONTWRITEBYTECODE=1"}
	out, err := cmd.CombinedOutput()
	if err != nil || !bytes.Contains(out, m[2]) {
		t.Errorf("%v: it prints %q, and is to print %q", err, out, m[2])
	}
}

func TestTheClientsOfDaytonaAreKeptTheirPromises(t *testing.T) {
	program, clients := needs(t)
	url := serve(t, program)
	scripts, err := filepath.Glob("testdata/py/*.py")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	scripts = append(scripts, plant(t, clients+"-js"))
	for _, tier := range []string{"jail", "gvisor"} {
		t.Run(tier, func(t *testing.T) {
			if tier == "gvisor" {
				sample.Turn(t, "Daytona's client on gvisor", 3)
			}
			turns := make(chan struct{}, 2) // each is a program of its own, and the machine may be small
			for _, script := range scripts {
				name := filepath.Base(script)
				if name == "common.py" {
					continue
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					turns <- struct{}{}
					defer func() { <-turns }()
					run(t, url, clients, script, tier)
				})
			}
		})
	}
}

// serve starts a server that ends with the test, and returns its address.
func serve(t *testing.T, program string) string {
	t.Helper()
	state := t.TempDir()
	if err := os.Chmod(state, 0o700); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, "serve", "--listen", "127.0.0.1:0", "--key", rigKey, "--state", state)
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the server: %v", err)
		}
		if t.Failed() {
			t.Log(log.String())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("the server did not start: %v", err)
	}
	return strings.TrimSpace(line)
}

// plant copies the script for JavaScript to where it finds the client.
func plant(t *testing.T, client string) string {
	t.Helper()
	dir := t.TempDir()
	data, err := os.ReadFile("testdata/js/all.mjs")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "all.mjs"), data, 0o600)
	}
	if err == nil {
		err = os.Symlink(client+"/node_modules", filepath.Join(dir, "node_modules"))
	}
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "all.mjs")
}

// run runs a script with the client.
func run(t *testing.T, url, clients, script, tier string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), scriptTime)
	defer cancel()
	program := "python3"
	if filepath.Ext(script) == ".mjs" {
		program = "node"
	}
	cmd := exec.CommandContext(ctx, program, filepath.Base(script))
	cmd.Dir = filepath.Dir(script)
	cmd.WaitDelay = 5 * time.Second
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "DAYTONA_API_KEY=" + rigKey, "DAYTONA_API_URL=" + url + "/api", "TIER=" + tier,
		"PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH=" + clients,
	}
	out, err := cmd.CombinedOutput()
	if err != nil || bytes.Contains(out, []byte("BROKEN: ")) || !bytes.Contains(out, []byte("kept: ")) {
		t.Errorf("%s on %s: %v\n%s", script, tier, err, out)
	}
}
