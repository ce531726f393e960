//go:build linux

package main

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// python3 is the one that every sandbox has: the first in somebody's PATH may
// be in his home.
const python3 = "/usr/bin/python3"

// A task is a script for the host and for each tier. It finds files in $data,
// may write in $work, which is a workspace in a sandbox, and in $tmp, which is
// in memory everywhere.
type task struct {
	what    string
	script  string
	after   string // undoes it, and is not timed
	program string // that the script needs, if not every machine has it
}

// goProgram is the Go that every sandbox sees, as python3 is.
const goProgram = "/usr/local/go/bin/go"

// tasks are what the walls and another kernel may make slower: calls, files,
// processes. Those of compilers and interpreters mostly compute, as everyday
// jobs do.
func tasks() []task {
	return []task{
		{what: "`python3 -c pass`", script: python3 + " -c pass"},
		{what: "untar of 5,000 files in `/tmp`", script: `mkdir $tmp/out; tar xf $data/files.tar -C $tmp/out`, after: `rm -rf $tmp/out`},
		{what: "untar of 5,000 files in a workspace", script: `mkdir $work/out; tar xf $data/files.tar -C $work/out`, after: `rm -rf $work/out`},
		{what: "`grep -r` over 5,000 files in `/tmp`", script: `grep -rc needle $tmp/tree >/dev/null || true`},
		{what: "`grep -r` over 5,000 files in a workspace", script: `grep -rc needle $work/tree >/dev/null || true`},
		{what: "200 times fork and exec of `/bin/true`", script: `i=0; while [ $i -lt 200 ]; do /bin/true; i=$((i+1)); done`},
		{what: "100,000 times `getppid`, in Python", script: python3 + " -c 'import os\nf = os.getppid\nfor i in range(100000): f()'"},
		{what: "computing, in Python", script: python3 + " -c 'sum(i * i for i in range(5000000))'"},
		{what: "computing, in Node.js", program: "/usr/bin/node", script: "/usr/bin/node -e 'let s = 0; for (let i = 0; i < 3e8; i++) s = (s + i * i) % 1000003; console.log(s)' >/dev/null"},
		{what: "computing, in Java", program: "/usr/bin/java", script: "/usr/bin/java $data/Main.java >/dev/null"},
		{what: "`gcc -O2` of 12,000 lines", program: "/usr/bin/gcc", script: "gcc -O2 -c $data/large.c -o $tmp/large.o"},
		{what: "`go build` after a change, warm", program: goProgram,
			script: `cd $work/prog; echo "package main; const nonce = $(date +%N | sed 's/^0*//')" > nonce.go; HOME=$tmp GOCACHE=$work/gocache GOFLAGS= GOPROXY=off ` + goProgram + ` build -o $tmp/prog .`},
		{what: "`dd`, 256 MB into `/tmp`", script: `dd if=/dev/zero of=$tmp/zeros bs=1M count=256 status=none`, after: `rm $tmp/zeros`},
	}
}

// A place is where a task runs.
type place struct {
	name string
	run  func(ctx context.Context, script string) error
}

// compareWork runs the tasks on the host and in a sandbox of each tier, in
// turns.
func compareWork(ctx context.Context, o options) (_ []row, err error) {
	top, err := os.MkdirTemp("", "paddock-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(top)
	shm, err := os.MkdirTemp("/dev/shm", "paddock-bench-") // as /tmp is in a sandbox: in memory
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(shm)
	data := filepath.Join(top, "data")
	if err := os.Mkdir(data, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(data, "files.tar"), archive(5000), 0o644); err != nil {
		return nil, err
	}
	for name, text := range map[string]string{"large.c": largeC(), "Main.java": mainJava, "main.go": mainGo} {
		if err := os.WriteFile(filepath.Join(data, name), []byte(text), 0o644); err != nil {
			return nil, err
		}
	}
	work := func(of string) string { return filepath.Join(top, of) }
	if err := os.Mkdir(work("host"), 0o755); err != nil {
		return nil, err
	}
	places := []place{onHost(work("host"), data, shm)}
	for _, t := range tiers() {
		dir := work(string(t.name))
		if err := os.Mkdir(dir, 0o755); err != nil {
			return nil, err
		}
		d, err := t.open(o, "")
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, d.Close()) }()
		p, remove, err := inSandbox(ctx, d, t, dir, data, paddock.UndoOff)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		defer func() { err = errors.Join(err, remove()) }()
		places = append(places, p)
	}
	for _, p := range places {
		if err := p.run(ctx, prepare); err != nil {
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
	}
	var rows []row
	for _, j := range tasks() {
		if j.program != "" {
			if _, err := os.Stat(j.program); err != nil {
				fmt.Fprintf(os.Stderr, "%s is left out: %v\n", j.what, err)
				continue
			}
		}
		took, err := inTurns(ctx, j, places)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", j.what, err)
		}
		rows = append(rows, j.told(took))
	}
	return rows, nil
}

// told gives the row: gVisor's time, and how the others are to it.
func (j task) told(took []samples) row {
	host, jail, kernel := took[0].p50(), took[1].p50(), took[2]
	times := func(d time.Duration) float64 { return float64(d) / float64(host) }
	return row{
		what: "gvisor: " + j.what, p50: ms(kernel.p50()), p99: ms(kernel.quantile(1)), runs: len(kernel),
		ratio: fmt.Sprintf("host %s; gvisor/host %.2f, jail/host %.2f", ms(host), times(kernel.p50()), times(jail)),
	}
}

func inTurns(ctx context.Context, j task, places []place) ([]samples, error) {
	took := make([]samples, len(places))
	for round := range repeats + 1 {
		for i, p := range places {
			began := time.Now()
			err := p.run(ctx, j.script)
			one := time.Since(began)
			if err == nil && j.after != "" {
				err = p.run(ctx, j.after)
			}
			if err != nil {
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
			if round > 0 { // the first warms up
				took[i] = append(took[i], one)
			}
		}
	}
	return took, nil
}

// prepare is run once in each place, so that there is something to search.
const prepare = `mkdir $tmp/tree $work/tree $work/prog; cp $data/main.go $work/prog; echo "module prog" > $work/prog/go.mod; tar xf $data/files.tar -C $tmp/tree; tar xf $data/files.tar -C $work/tree`

func onHost(work, data, tmp string) place {
	return place{"host", func(ctx context.Context, script string) error {
		cmd := exec.CommandContext(ctx, "/bin/sh", "-ec", script)
		cmd.Env = []string{"PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8", "data=" + data, "work=" + work, "tmp=" + tmp}
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return nil
	}}
}

func inSandbox(ctx context.Context, d paddock.Driver, t tier, work, data string, undo paddock.UndoMode) (place, func() error, error) {
	spec := t.spec()
	spec.Mounts = []paddock.Mount{{Source: data}, {Source: work, Write: true}}
	spec.Limits, spec.Undo = paddock.Limits{Memory: 2 << 30, Disk: 1 << 30}, undo
	sb, err := d.Create(ctx, spec)
	if err != nil {
		return place{}, nil, err
	}
	env := map[string]string{"data": data, "work": work, "tmp": "/tmp"}
	run := func(ctx context.Context, script string) error {
		var errs bytes.Buffer
		p, err := sb.Start(ctx, paddock.Cmd{Args: []string{"/bin/sh", "-ec", script}, Env: env, Output: paddock.Output{Stderr: &errs}})
		if err != nil {
			return err
		}
		exit, err := p.Wait(ctx)
		if err == nil && exit.Code != 0 {
			err = fmt.Errorf("it ended with %d: %s %s", exit.Code, exit.Reason, &errs)
		}
		return err
	}
	return place{string(t.name), run}, func() error { return sb.Remove(context.WithoutCancel(ctx)) }, nil
}

// archive gives so many small files, in directories of a hundred.
func archive(files int) []byte {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	text := bytes.Repeat([]byte("a line of some text, and another\n"), 30)
	for i := range files {
		// Writing to memory does not fail.
		_ = w.WriteHeader(&tar.Header{Name: fmt.Sprintf("dir%d/file%d.txt", i/100, i), Mode: 0o644, Size: int64(len(text))})
		_, _ = w.Write(text)
	}
	_ = w.Close()
	return b.Bytes()
}

const mainGo = `package main

import (
	"fmt"
	"net/http"
)

func main() { fmt.Println(nonce, http.StatusText(200)) }
`

const mainJava = `class Main {
	public static void main(String[] args) {
		long s = 0;
		for (long i = 0; i < 300_000_000L; i++) s = (s + i * i) % 1000003;
		System.out.println(s);
	}
}
`

// largeC gives functions that a compiler has something to do with.
func largeC() string {
	var b strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&b, `int f%d(const int *a, int n) {
	int s = %d;
	for (int i = 0; i < n; i++) {
		if (a[i] %% 3 == 0)
			s += a[i] * %d;
		else
			s ^= a[i] << (i & 7);
	}
	for (int i = n; i > 0; i--)
		s = s * 31 + a[i - 1];
	return s;
}
`, i, i, i+1)
	}
	return b.String()
}
