package daytona_test

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
)

// The rig runs Daytona's own client against `paddock serve`: every script in testdata/py, on each tier. It prints a line
// "kept: …" for each promise, and "BROKEN: …" for one that is not kept.

const rigKey = "e2b_00112233445566778899aabbccddeeff00112233"

// top is the top of the tree.
const top = "../../.."

const scriptTime = 3 * time.Minute // for what waits for nothing but answers

func TestTheClientsOfDaytonaAreKeptTheirPromises(t *testing.T) {
	abs, err := filepath.Abs(top)
	if err != nil {
		t.Fatal(err)
	}
	program, clients := abs+"/bin/paddock", abs+"/.tmp/sdk/daytona"
	for _, name := range []string{program, clients + ".txt"} {
		if _, err := os.Stat(name); err != nil {
			t.Skipf("%v: make build sdk", err)
		}
	}
	url := serve(t, program)
	scripts, err := filepath.Glob("testdata/py/*.py")
	if err != nil || len(scripts) == 0 {
		t.Fatalf("no scripts: %v", err)
	}
	for _, tier := range []string{"jail", "gvisor"} {
		t.Run(tier, func(t *testing.T) {
			if tier == "gvisor" {
				sample.Turn(t, "Daytona's client on gvisor", 3)
			}
			for _, script := range scripts {
				if name := filepath.Base(script); name != "common.py" {
					t.Run(strings.TrimSuffix(name, ".py"), func(t *testing.T) { run(t, url, clients, script, tier) })
				}
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

// run runs a script with the client.
func run(t *testing.T, url, clients, script, tier string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), scriptTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "python3", filepath.Base(script))
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
