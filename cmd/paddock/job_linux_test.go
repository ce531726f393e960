//go:build linux

package main

import (
	"cmp"
	"embed"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
)

//go:embed testdata/job
var jobs embed.FS

// TestJobs does everyday jobs with the real programs of this machine. Each is a script whose command job runs a
// command twice in the directory w: on the host and in a sandbox. Both have to succeed, with the same output.
func TestJobs(t *testing.T) {
	files := jobFiles(t)
	reached := sync.OnceValue(online)
	root, err := os.MkdirTemp("", "j") // the path of a Unix socket has 107 bytes at most
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = exec.Command("chmod", "-R", "u+w", root).Run() // Go's modules are read-only
		if err := os.RemoveAll(root); err != nil {
			t.Error(err)
		}
	})
	for _, tier := range []string{"jail", "gvisor"} {
		t.Run(tier, func(t *testing.T) {
			turns := 8
			if os.Geteuid() != 0 {
				turns = 16
			}
			tried, left := sample.Part(sample.Seed("jobs"), tier, files, turns)
			for _, f := range left {
				t.Log(sample.LeftOut + filepath.Base(f))
			}
			at := filepath.Join(root, tier[:1])
			if err := os.Mkdir(at, 0o755); err != nil {
				t.Fatal(err)
			}
			testscript.Run(t, testscript.Params{
				Files:       tried,
				WorkdirRoot: at,
				Setup: func(e *testscript.Env) error {
					home := filepath.Join(e.WorkDir, "home")
					if own, ok := os.LookupEnv("HOME"); ok { // rustup looks for its tool chains there
						e.Setenv("RUSTUP_HOME", filepath.Join(own, ".rustup"))
					}
					if cache, err := os.UserCacheDir(); err == nil { // what the host compiled before
						e.Setenv("GOCACHE", filepath.Join(cache, "go-build"))
					}
					for _, name := range []string{"SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "PIP_CERT", "REQUESTS_CA_BUNDLE"} {
						if file, ok := os.LookupEnv(name); ok { // of a registry that is a mirror
							e.Setenv(name, file)
						}
					}
					e.Setenv("HOME", home)
					e.Setenv("SHELL", "/bin/sh") // an account may have none
					e.Setenv("JOB_TIER", tier)
					return os.Mkdir(home, 0o755)
				},
				Condition: func(cond string) (bool, error) {
					switch cond {
					case "root":
						return os.Geteuid() == 0, nil
					case "online":
						return reached(), nil
					case "rules": // a network with rules needs this device, which some hosts keep to root
						f, err := os.OpenFile("/dev/net/tun", os.O_RDWR, 0)
						return err == nil && f.Close() == nil, nil
					}
					t.Fatalf("no condition is called %q", cond)
					return false, nil
				},
				Cmds:                map[string]func(*testscript.TestScript, bool, []string){"job": job, "reach": reach},
				RequireExplicitExec: true,
				RequireUniqueNames:  true,
			})
		})
	}
}

func TestJobsAsUser(t *testing.T) { drivertest.SomeAsAccount(t, "^TestJobs$", 3) }

// online reports whether the registry of the host's npm can be reached, and with it the others.
func online() bool {
	out, err := exec.Command("npm", "config", "get", "registry").Output()
	if err != nil {
		return false
	}
	u, err := url.Parse(strings.TrimSpace(string(out)))
	if err != nil {
		return false
	}
	conn, err := net.DialTimeout("tcp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), u.Scheme)), time.Minute)
	return err == nil && conn.Close() == nil
}

// urls finds hosts in what a client of a registry prints.
var urls = regexp.MustCompile(`https?://([a-zA-Z0-9.-]+)`)

// reach is a command of the scripts: reach VARIABLE command [argument ...]. It sets the variable to what --allow needs for
// the hosts of the URLs that the command prints. The addresses are those of a mirror that is not public.
func reach(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: reach variable command [argument ...]")
	}
	ts.Check(ts.Exec(args[1], args[2:]...))
	var list []string
	for _, match := range urls.FindAllStringSubmatch(ts.ReadFile("stdout"), -1) {
		addresses, err := net.LookupHost(match[1])
		if err != nil {
			ts.Logf("%s is left out: %v", match[1], err)
			continue
		}
		list = append(append(list, match[1]), addresses...)
	}
	if len(list) == 0 {
		ts.Fatalf("no URL is printed: %s", ts.ReadFile("stdout"))
	}
	slices.Sort(list)
	ts.Setenv(args[0], strings.Join(slices.Compact(list), ","))
}

const tableOfJobs = "../../docs/use/jobs.md"

// The table is what the first two lines of each job say. PADDOCK_UPDATE=1 writes it.
func TestTheTableOfJobs(t *testing.T) {
	var b strings.Builder
	b.WriteString(`# Everyday jobs that are tested

Each job runs with the real programs of the machine, once on the host and once in a sandbox of the tiers jail and
gvisor. The two have to print the same, and Paddock has to be silent. The scripts are in
[cmd/paddock/testdata/job](../../cmd/paddock/testdata/job). A report is named where somebody found that a job does not
work in a sandbox, of whatever maker. The table is written by
` + "`PADDOCK_UPDATE=1 go test ./cmd/paddock -run TestTheTableOfJobs`" + `.

| script | job | reports |
| --- | --- | --- |
`)
	for _, f := range jobFiles(t) {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(f), ".txtar")
		what, rest, _ := strings.Cut(string(text), "\n")
		from, _, _ := strings.Cut(rest, "\n")
		what, ok := strings.CutPrefix(what, "# Job: ")
		from, also := strings.CutPrefix(from, "# From: ")
		if !ok || !also {
			t.Errorf("%s does not begin with lines of # Job: and # From:", name)
		}
		if from == "own" {
			from = ""
		}
		fmt.Fprintf(&b, "| %s | %s | %s |\n", name, what, from)
	}
	if os.Getenv("PADDOCK_UPDATE") == "1" {
		if err := os.WriteFile(filepath.FromSlash(tableOfJobs), []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	have, err := os.ReadFile(filepath.FromSlash(tableOfJobs))
	if err != nil {
		t.Fatal(err)
	}
	if string(have) != b.String() {
		t.Errorf("%s does not list the jobs as they are; write it anew: PADDOCK_UPDATE=1 go test ./cmd/paddock -run TestTheTableOfJobs", tableOfJobs)
	}
}

// jobFiles writes the scripts into a directory, and returns their paths.
func jobFiles(t *testing.T) []string {
	t.Helper()
	const dir = "testdata/job"
	entries, err := jobs.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	at := t.TempDir()
	var files []string
	for _, e := range entries {
		b, err := jobs.ReadFile(path.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		f := filepath.Join(at, e.Name())
		if err := os.WriteFile(f, b, 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	return files
}

// job is a command of the scripts: job [flag of paddock run ...] -- command. Standard error of the sandbox may have
// no word of Paddock, such as one about what was refused.
func job(ts *testscript.TestScript, neg bool, args []string) {
	i := slices.Index(args, "--")
	if neg || i < 0 || i+1 == len(args) {
		ts.Fatalf("usage: job [flag ...] -- command [argument ...]")
	}
	flags, command := args[:i], args[i+1:]
	ts.Check(ts.Exec("cp", "-a", "w", "before"))
	began := time.Now()
	ts.Check(ts.Exec("sh", append([]string{"-c", `cd w && exec "$@"`, "sh"}, command...)...))
	host, want := time.Since(began), ts.ReadFile("stdout")
	ts.Check(ts.Exec("rm", "-rf", "w"))
	ts.Check(ts.Exec("cp", "-a", "before", "w"))
	began = time.Now()
	run := append([]string{"-c", `cd w && exec paddock run --tier "$JOB_TIER" --workspace . "$@"`, "sh"}, flags...)
	err := ts.Exec("sh", append(append(run, "--"), command...)...)
	box, got, told := time.Since(began), ts.ReadFile("stdout"), ts.ReadFile("stderr")
	ts.Logf("on the host %v, in the sandbox %v", host.Round(time.Millisecond), box.Round(time.Millisecond))
	if err != nil {
		ts.Fatalf("in the sandbox: %v\n%s%s", err, got, told)
	}
	if got != want {
		ts.Fatalf("on the host it prints\n%s\nand in the sandbox\n%s%s", want, got, told)
	}
	for line := range strings.Lines(told) {
		if strings.HasPrefix(line, "paddock: ") {
			ts.Fatalf("Paddock complains:\n%s", told)
		}
	}
	ts.Check(ts.Exec("rm", "-rf", "w"))
	ts.Check(ts.Exec("mv", "before", "w"))
}
