//go:build linux

package archtest_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A block is commands of a document that are marked for testing, with the
// lines that the document says they print.
type block struct {
	kind   string // "build" runs once, empty runs as each kind of user, "machine" where a machine can be made, "command" is the test command
	script string
	output []string
}

// marked finds <!-- test -->, <!-- test: build --> and <!-- test: machine --> before ```sh blocks, and
// <!-- output --> before the ```text block that belongs to the one before.
var marked = regexp.MustCompile("(?ms)^<!-- (test|test: build|test: machine|test command|output) -->\n```(?:sh|text)\n(.*?)^```$")

// blocks gives the marked blocks of the README, and then those of each document below docs.
func blocks(t *testing.T) []block {
	t.Helper()
	var found []block
	for _, name := range append([]string{"README.md"}, documentsBelow(t, "docs")...) {
		found = append(found, blocksOf(t, name)...)
	}
	return found
}

func blocksOf(t *testing.T, document string) []block {
	t.Helper()
	var found []block
	for _, m := range marked.FindAllStringSubmatch(read(t, document), -1) {
		switch m[1] {
		case "output":
			if len(found) == 0 {
				t.Fatalf("%s: output before any command", document)
			}
			found[len(found)-1].output = strings.Split(strings.TrimSpace(m[2]), "\n")
		case "test: build":
			found = append(found, block{kind: "build", script: m[2]})
		case "test: machine":
			found = append(found, block{kind: "machine", script: m[2]})
		case "test command":
			found = append(found, block{kind: "command", script: m[2]})
		default:
			found = append(found, block{script: m[2]})
		}
	}
	return found
}

// A reader of the documents: a user of this machine with a home.
type reader struct {
	name string
	uid  int // -1 is the user of this test
	path string
}

const stranger = 61234 // a number that no one has

func TestTheReadmeWorks(t *testing.T) {
	clone := filepath.Join(public(t), "paddock")
	copyTree(t, root(t), clone)
	build(t, clone)

	readers := []reader{{"as the caller", -1, os.Getenv("PATH")}}
	if os.Geteuid() == 0 {
		readers = append(readers, reader{"as an unprivileged user", stranger, "/usr/local/bin:/usr/bin:/bin"})
	}
	for _, who := range readers {
		t.Run(who.name, func(t *testing.T) {
			top := public(t)
			home, dir := filepath.Join(top, "home"), filepath.Join(top, "paddock")
			if err := os.Mkdir(home, 0o700); err != nil {
				t.Fatal(err)
			}
			for _, sub := range []string{"bin", "examples"} {
				copyFiles(t, filepath.Join(clone, sub), filepath.Join(dir, sub))
			}
			if who.uid >= 0 {
				give(t, top, who.uid)
			}
			for _, b := range blocks(t) {
				if b.kind == "" {
					run(t, b, dir, home, who)
				}
			}
			if who.uid >= 0 {
				return // whose kernels are in a home that is made for this test
			}
			t.Run("in a machine", func(t *testing.T) {
				status := exec.CommandContext(t.Context(), filepath.Join(dir, "bin", "paddock"), "vm", "status")
				if out, err := status.CombinedOutput(); err != nil {
					t.Skipf("no machine can be made: %s", out)
				}
				for _, b := range blocks(t) {
					if b.kind == "machine" {
						run(t, b, dir, home, who)
					}
				}
			})
		})
	}
}

// builtVariable names the directory of programs that make build has put into this tree
// a moment ago, for a run in which building them once more would show nothing.
const builtVariable = "PADDOCK_TEST_BUILT"

// build runs the README's commands that build, in a clone. Where make has run the
// same command for this test, the programs are copied.
func build(t *testing.T, clone string) {
	t.Helper()
	built := os.Getenv(builtVariable)
	for _, b := range blocks(t) {
		switch {
		case b.kind != "build":
		case built == "":
			run(t, b, clone, "", reader{uid: -1, path: os.Getenv("PATH")})
		default:
			if commands := pasted(strings.TrimSpace(b.script)); len(commands) != 1 || commands[0] != "make build" {
				t.Errorf("the README builds with %q, and %s was built with make build", commands, built)
			}
			copyFiles(t, built, filepath.Join(clone, "bin"))
		}
	}
}

func TestTheReadmeNamesTheTestCommandThatDecides(t *testing.T) {
	decides := read(t, ".ci/run")
	for _, b := range blocks(t) {
		if b.kind != "command" {
			continue
		}
		if !strings.Contains(decides, "\n"+b.script) {
			t.Errorf(".ci/run does not run the README's %q", b.script)
		}
		return
	}
	t.Error("the README names no test command")
}

// run runs a block as a person would paste it, and compares what it prints.
func run(t *testing.T, b block, dir, home string, who reader) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-eu", "-c", strings.Join(pasted(b.script), "\n"))
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + who.path, "LANG=C.UTF-8", "HOME=" + home}
	if b.kind == "build" {
		cmd.Env = os.Environ() // with the caller's caches
	}
	if who.uid >= 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(who.uid), Gid: uint32(who.uid)}}
	}
	cmd.WaitDelay = 5 * time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s\n%v\n%s", b.script, err, out)
	}
	rest := string(out)
	for _, want := range b.output {
		_, after, found := strings.Cut(rest, want+"\n")
		if !found {
			t.Errorf("%s\ndoes not print, in this order, %q:\n%s", b.script, want, out)
			return
		}
		rest = after
	}
}

// pasted gives the lines of a script, but for getting the clone that the test
// has made already.
func pasted(script string) []string {
	var lines []string
	for line := range strings.SplitSeq(script, "\n") {
		if !strings.HasPrefix(line, "git clone ") && line != "cd paddock" {
			lines = append(lines, line)
		}
	}
	return lines
}

// public makes a directory that every user can enter.
func public(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "paddock-readme-") // t.TempDir is closed to others
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	return dir
}

// copyTree copies what a fresh clone of the work tree would hold.
func copyTree(t *testing.T, from, to string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "ls-files", "-z", "-co", "--exclude-standard")
	cmd.Dir = from
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	for name := range bytes.SplitSeq(bytes.TrimSuffix(out, []byte{0}), []byte{0}) {
		copyFile(t, filepath.Join(from, string(name)), filepath.Join(to, string(name)))
	}
}

// copyFiles copies a directory of regular files.
func copyFiles(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.Walk(from, func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		copyFile(t, path, filepath.Join(to, rel))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	info, err := os.Lstat(from)
	if os.IsNotExist(err) {
		return // removed, and the removal is not committed yet
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if info.Mode()&os.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(target, to); err != nil {
			t.Fatal(err)
		}
		return
	}
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(out, in); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
}

// give makes a user the owner of a tree.
func give(t *testing.T, top string, uid int) {
	t.Helper()
	err := filepath.Walk(top, func(path string, _ os.FileInfo, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, uid, uid)
	})
	if err != nil {
		t.Fatal(err)
	}
}
