package agenttest_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"maps"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/agenttest"
	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
)

// A recipe is a copy of examples/agent-sdk with a model that works its tasks.
type recipe struct {
	model              *agenttest.Model
	dir, python, tier  string
	paddock, libraries string
}

func newRecipe(t *testing.T, tier string) *recipe {
	t.Helper()
	built, agents := os.Getenv("PADDOCK_TEST_BUILT"), os.Getenv("PADDOCK_TEST_AGENTS")
	if built == "" || agents == "" {
		t.Skip("PADDOCK_TEST_BUILT or PADDOCK_TEST_AGENTS is not set: make build agents")
	}
	if f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0); err != nil {
		t.Skipf("a network with rules needs it: %v", err)
	} else if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	r := &recipe{dir: filepath.Join(t.TempDir(), "agent-sdk"), tier: tier, paddock: filepath.Join(built, "paddock"), libraries: filepath.Join(agents, "py"), python: "/usr/bin/python3"}
	if err := os.Chmod(filepath.Dir(filepath.Dir(r.dir)), 0o755); err != nil { // the box and its gateway are other users
		t.Fatal(err)
	}
	if err := os.CopyFS(r.dir, os.DirFS("../../examples/agent-sdk")); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), r.python, filepath.Join(r.dir, "filing.py")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	r.model = agenttest.NewModel(t)
	return r
}

// primes gives the model the answers for the task of primes.
func (r *recipe) primes() {
	r.model.When("primes.py",
		agenttest.Write(r.out("primes", "primes.py"), "found, n = [], 2\nwhile len(found) < 50:\n"+
			"    if all(n % p for p in found):\n        found.append(n)\n    n += 1\nprint(*found, sep='\\n', file=open('primes.txt', 'w'))\n"),
		agenttest.Shell("python3 primes.py && tail -1 primes.txt"),
		agenttest.Say("The first 50 primes are in primes.txt."))
}

// report gives it those for the task of a report: the filing is too long to be read at once.
func (r *recipe) report() {
	r.model.When("report.md",
		agenttest.Read(filepath.Join(r.dir, "filing.txt")),
		agenttest.Shell("grep -nE '^Item|, revenue of|possible loss' ../../filing.txt"),
		agenttest.Write(r.out("report", "report.md"), wantReport),
		agenttest.Say("The report is written."))
}

const wantReport = "# Nordvale Flow Systems, 2025\n\n" +
	"| segment | revenue 2023, 2024, 2025 | profit 2023, 2024, 2025 | growth |\n| --- | --- | --- | --- |\n" +
	"| Pumps | 110, 128, 158 | 15, 18, 22 | 44 % |\n| Valves | 120, 128, 142 | 17, 18, 20 | 18 % |\n" +
	"| Sensors | 130, 147, 158 | 18, 21, 22 | 22 % |\n| Service | 140, 157, 164 | 20, 22, 23 | 17 % |\n\n" +
	"The largest risks, in EUR million: one customer's orders (82, item 9.1), a recall (80, item 9.3), the price of copper (77, item 9.2).\n"

func (r *recipe) out(task, name string) string { return filepath.Join(r.dir, "out", task, name) }

// command returns paddock, run as the document shows it, but for where the vendor and the libraries are.
func (r *recipe) command(t *testing.T, verb string, flags []string, command ...string) *exec.Cmd {
	t.Helper()
	at := agenttest.Host + ":" + r.model.Port()
	list := append([]string{
		verb, "-w", ".", "--read", r.libraries, "--tier", r.tier, "--memory", "2G", "--pids", "512", "--allow", "host:" + r.model.Port(),
		"--secret", "ANTHROPIC_API_KEY=env:ANTHROPIC_API_KEY@" + at, "-e", "ANTHROPIC_BASE_URL=" + r.model.URL(), "-e", "PYTHONPATH=" + r.libraries,
	}, flags...)
	c := exec.CommandContext(t.Context(), r.paddock, append(append(list, "--", r.python, "agent.py"), command...)...)
	c.Dir = r.dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "LANG=C.UTF-8", "SSL_CERT_FILE=" + r.model.Authority(), "ANTHROPIC_API_KEY=" + key}
	return c
}

// checkPrimes and checkReport check what the tasks left on the host.
func (r *recipe) checkPrimes(t *testing.T) {
	t.Helper()
	var want strings.Builder
	for n, found := 2, 0; found < 50; n++ {
		if big.NewInt(int64(n)).ProbablyPrime(0) { // which is exact for numbers below 2^64
			fmt.Fprintln(&want, n)
			found++
		}
	}
	if got, err := os.ReadFile(r.out("primes", "primes.txt")); string(got) != want.String() {
		t.Errorf("the primes are %q, %v", got, err)
	}
}

func (r *recipe) checkReport(t *testing.T) {
	t.Helper()
	if got, err := os.ReadFile(r.out("report", "report.md")); string(got) != wantReport {
		t.Errorf("the report is %q, %v", got, err)
	}
	// What the model was told is what is in the filing, so it could have written these figures.
	filing, err := os.ReadFile(filepath.Join(r.dir, "filing.txt"))
	if err != nil {
		t.Fatal(err)
	}
	figures := regexp.MustCompile(`(?m)^(?:In 20.*revenue of .*|The board puts .*)$`).FindAllString(string(filing), -1)
	if len(figures) != 19 {
		t.Errorf("the filing has %d lines with figures", len(figures))
	}
	requests := r.model.Requests()
	for _, line := range figures {
		if !slices.ContainsFunc(requests, func(q agenttest.Request) bool { return bytes.Contains(q.Body, []byte(line)) }) {
			t.Errorf("the model was never told %q", line)
		}
	}
}

// checkKey checks that the key came to the model, and nothing that the box could see has it.
func (r *recipe) checkKey(t *testing.T) {
	t.Helper()
	if list := holds(t, r.dir); len(list) > 0 {
		t.Errorf("the key is on the disk: %s", list)
	}
	used := false
	for _, q := range r.model.Requests() {
		used = used || q.Header.Get("X-Api-Key") == key
		if bytes.Contains(q.Body, []byte(key)) || strings.Contains(q.Path, key) {
			t.Errorf("the key is in a request: %s %s", q.Method, q.Path)
		}
	}
	if !used {
		t.Error("no request has the key")
	}
}

// onTiers runs a test on the tiers, or of a sample on one, with each of the parts.
func onTiers(t *testing.T, suite string, run func(t *testing.T, r *recipe, part string), parts ...string) {
	t.Helper()
	var names []string
	for _, tier := range []string{"jail", "gvisor"} {
		for _, part := range parts {
			names = append(names, tier+"/"+part)
		}
	}
	tried, left := sample.Part(sample.Seed(suite), suite, names, len(names))
	for _, name := range left {
		t.Log(sample.LeftOut + name)
	}
	for _, name := range tried {
		t.Run(name, func(t *testing.T) {
			tier, part, _ := strings.Cut(name, "/")
			run(t, newRecipe(t, tier), part)
		})
	}
}

// A task is worked in a box, with the key outside.
func TestTheSDKWorksATask(t *testing.T) {
	onTiers(t, "agents of the SDK", func(t *testing.T, r *recipe, task string) {
		r.primes()
		r.report()
		out, err := r.command(t, "run", nil, task).CombinedOutput()
		t.Logf("%s", out)
		if err != nil {
			t.Fatal(err)
		}
		steps, check := []string{"> Write ", "> Bash python3 primes.py", "primes are in primes.txt.\n3 turns"}, r.checkPrimes
		if task == "report" {
			steps, check = []string{"> Read ", "> Bash grep", "> Write ", "The report is written.\n4 turns"}, r.checkReport
		}
		rest, found := string(out), false
		for _, step := range steps {
			if _, rest, found = strings.Cut(rest, step); !found {
				t.Errorf("%q is not shown in its place", step)
			}
		}
		check(t)
		r.checkKey(t)
	}, "primes", "report")
}

// Tasks are worked beside each other, and a person reads what one has done while the model still thinks about the
// other.
func TestTheSDKWorksTasksBesideEachOther(t *testing.T) {
	onTiers(t, "agents of the SDK beside each other", func(t *testing.T, r *recipe, _ string) {
		// The first input never ends by itself. What it shows, and the whole other task, is to be seen before it is
		// interrupted.
		r.model.When("report.md", agenttest.Shell("echo I am looking"), agenttest.Wait())
		r.primes()
		c := r.command(t, "map", []string{"--live", "-j", "2"}, "{}", ":::", "report", "primes")
		var errors bytes.Buffer
		c.Stderr = &errors
		stdout, err := c.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		want := map[string]bool{"report: > Bash echo I am looking": true, "primes: The first 50 primes are in primes.txt.": true}
		lines := bufio.NewScanner(stdout)
		for len(want) > 0 && lines.Scan() {
			t.Log(lines.Text())
			delete(want, lines.Text())
		}
		if len(want) > 0 {
			t.Errorf("it ended without %v", slices.Sorted(maps.Keys(want)))
		} else {
			<-r.model.Waiting()
			if err := c.Process.Signal(syscall.SIGINT); err != nil {
				t.Error(err)
			}
		}
		if _, err := io.Copy(io.Discard, stdout); err != nil {
			t.Error(err)
		}
		if err := c.Wait(); err == nil {
			t.Error("an interrupted map ends with 0")
		}
		t.Logf("%s", errors.String())
		r.checkPrimes(t)
		r.checkKey(t)
	}, "both")
}

// A runtime that was killed for lack of memory is explained: that it was memory, the limit, and what to type.
func TestAKillOfTheSDKIsExplained(t *testing.T) {
	onTiers(t, "agents of the SDK that are killed", func(t *testing.T, r *recipe, _ string) {
		r.primes()
		out, err := r.command(t, "run", []string{"--memory", "96M"}, "primes").CombinedOutput()
		t.Logf("%s", out)
		if err == nil {
			t.Fatal("it works with 96 MiB")
		}
		for _, want := range []string{"was killed: it ran out of memory, limit 96 MiB", "hint: more memory: --memory"} {
			if !strings.Contains(string(out), want) {
				t.Errorf("it does not tell %q", want)
			}
		}
	}, "runtime")
}
