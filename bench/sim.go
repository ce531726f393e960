//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/sim/command/python"
)

// A job is a script that every shell runs, in a directory that holds the
// corpus.
type job struct {
	what   string
	script string
	check  string // what the script must print; empty is whatever bash prints
}

// jobs are what agents do with text, and what shells are slow at.
func jobs() []job {
	return []job{
		{what: "loop of 100,000 with `[ ]` and `$(( ))`", script: `i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo $i`, check: "100000\n"},
		{what: "C-style loop of 50,000", script: `s=0; for ((i=0;i<50000;i++)); do ((s+=i)); done; echo $s`, check: "1249975000\n"},
		{what: "20,000 function calls", script: `f() { n=$((n+1)); }; n=0; for i in $(seq 20000); do f $i; done; echo $n`, check: "20000\n"},
		{what: "20,000 string operations", script: `s=hello-world.tar.gz; for i in $(seq 20000); do a=${s%%.*}; b=${s#*-}; c=${s/world/$i}; done; echo $a $b $c`, check: "hello-world world.tar.gz hello-20000.tar.gz\n"},
		{what: "5,000 times `a+=(x)`", script: `a=(); for i in $(seq 5000); do a+=("$i"); done; echo ${#a[@]}`, check: "5000\n"},
		{what: "1,000 times `$(echo)`", script: `for i in $(seq 1000); do x=$(echo $i); done; echo $x`, check: "1000\n"},
		{what: "500 times `echo | tr`", script: `for i in $(seq 500); do x=$(echo abc$i | tr a-z A-Z); done; echo $x`, check: "ABC500\n"},
		{what: "read loop of 20,000 lines", script: `n=0; while read -r a b; do n=$((n+1)); done < <(head -n 20000 log.txt); echo $n`, check: "20000\n"},
		{what: "`grep -rn`, 1,000 files, 8.4 MB", script: `grep -rn needle-in-the-haystack src | wc -l`},
		{what: "`grep -rnE` with a pattern", script: `grep -rnE 'f[a-z]+_[0-9]+ = "(x|y)z+"' src | wc -l`},
		{what: "`find` 1,000 files", script: `find src -name '*5.txt' -type f | wc -l`},
		{what: "`awk` sums 100,000 lines", script: `awk '{n[$2]+=$3} END {for (k in n) print k, n[k]}' log.txt | sort`},
		{what: "`jq`, 5 MB", script: `jq -r '.[] | select(.size > 500) | .name' data.json | wc -l`},
		{what: "`sort` of 100,000 lines", script: `sort log.txt | tail -n 1`},
		{what: "`sed s///g` over 100,000 lines", script: `sed 's/error/ERROR/g; s/[0-9][0-9]*ms/N/' log.txt | tail -n 1`},
		{what: "`cut | sort | uniq -c | sort -rn`", script: `cut -d' ' -f2 log.txt | sort | uniq -c | sort -rn | head -n 3`},
		{what: "`sqlite3` groups 20,000 rows", script: `(echo 'create table t (level text, ms int);'; echo 'begin;'; head -n 20000 log.txt | awk '{print "insert into t values (" "\x27" $2 "\x27," $3 ");"}'; echo 'commit; select level, sum(ms) from t group by level;') | sqlite3 :memory:`},
		{what: "`python3 -c 'print(1+1)'`, not the first", script: `python3 -c 'print(1+1)'`},
	}
}

// corpus gives the files that the jobs read.
func corpus() map[string]string {
	files := map[string]string{}
	var log strings.Builder
	levels := []string{"info", "warning", "error", "debug", "trace"}
	for i := range 100_000 {
		fmt.Fprintf(&log, "%07d %s %d took %dms\n", (i*7919)%100_000, levels[i*i%5], i%1000, i%977)
	}
	files["log.txt"] = log.String()
	var data strings.Builder
	data.WriteString("[")
	for i := range 50_000 {
		if i > 0 {
			data.WriteString(",")
		}
		fmt.Fprintf(&data, `{"name": "item-%d", "size": %d, "tags": ["a", "b%d"], "deep": {"x": %d.5, "ok": true}}`, i, i%1000, i%10, i)
	}
	data.WriteString("]\n")
	files["data.json"] = data.String()
	for i := range 1000 {
		var b strings.Builder
		for j := range 200 {
			fmt.Fprintf(&b, "line %d of file %d: some_name_%d = value; /* text */\n", j, i, j*i)
		}
		if i%10 == 0 {
			b.WriteString("here is a needle-in-the-haystack\nfoo_1 = \"xzzz\"\n")
		}
		files[fmt.Sprintf("src/dir%d/file%d.txt", i%25, i)] = b.String()
	}
	return files
}

// repeats is how often each job runs in each shell; the median counts.
const repeats = 5

// compareShells runs the jobs in the simulated tier, in bash with the GNU
// tools, and in just-bash.
func compareShells(ctx context.Context, o options) (_ []row, err error) {
	files := corpus()
	dir, err := os.MkdirTemp("", "paddock-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	for name, text := range files {
		full := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(full), 0o755), os.WriteFile(full, []byte(text), 0o644)); err != nil {
			return nil, err
		}
	}
	interpreter, err := os.MkdirTemp("", "paddock-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(interpreter)
	if err := install(ctx, o.python, interpreter); err != nil {
		return nil, err
	}
	s, err := openSimulated(ctx, files, interpreter)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close(ctx)) }()
	peer, err := justBash(ctx, o, dir)
	if err != nil {
		return nil, err
	}
	var rows []row
	for i, j := range jobs() {
		var ours, theirs samples
		for range repeats {
			took, out, err := s.run(ctx, j.script)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", j.what, err)
			}
			ours = append(ours, took)
			took, want, err := realBash(ctx, dir, j.script)
			if err != nil {
				return nil, fmt.Errorf("%s in bash: %w", j.what, err)
			}
			theirs = append(theirs, took)
			if j.check != "" {
				want = j.check
			}
			if out != want {
				return nil, fmt.Errorf("%s: %q, and bash says %q", j.what, out, want)
			}
		}
		rows = append(rows, row{
			what: "sim: " + j.what, p50: ms(ours.p50()), p99: ms(ours.quantile(1)), runs: len(ours),
			ratio: fmt.Sprintf("bash %s (%.2f), just-bash %s", ms(theirs.p50()), float64(theirs.p50())/float64(ours.p50()), peer.told(i, ours.p50())),
		})
	}
	small, err := smallThings(ctx)
	return append(small, rows...), err
}

// simulated is a box of the simulated tier with a session in it.
type simulated struct {
	d *sim.Driver
	s *sim.Session
}

// install unpacks and compiles the package of Python into a directory.
func install(ctx context.Context, from, dir string) error {
	f, err := os.Open(from)
	if err != nil {
		return fmt.Errorf("make python fetches it: %w", err)
	}
	defer f.Close()
	return python.Install(ctx, dir, f)
}

func openSimulated(ctx context.Context, files map[string]string, interpreter string) (*simulated, error) {
	d, err := sim.New(sim.Options{Python: interpreter})
	if err != nil {
		return nil, err
	}
	sb, err := d.Create(ctx, paddock.Spec{})
	if err != nil {
		return nil, err
	}
	for name, text := range files {
		w, err := sb.FS().Create(ctx, "/home/user/"+name, paddock.CreateOptions{Parents: true})
		if err != nil {
			return nil, err
		}
		_, err = io.WriteString(w, text)
		if err := errors.Join(err, w.Close()); err != nil {
			return nil, err
		}
	}
	s, err := sim.OpenSession(ctx, sb, paddock.Cmd{})
	if err != nil {
		return nil, err
	}
	return &simulated{d, s}, nil
}

func (s *simulated) run(ctx context.Context, script string) (time.Duration, string, error) {
	var out, errs bytes.Buffer
	began := time.Now()
	exit, err := s.s.Run(ctx, sim.Script{Text: script, Stdout: &out, Stderr: &errs})
	took := time.Since(began)
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("it ended with %d: %s %s", exit.Code, exit.Reason, &errs)
	}
	return took, out.String(), err
}

func (s *simulated) close(context.Context) error {
	return errors.Join(s.s.Close(), s.d.Close())
}

func realBash(ctx context.Context, dir, script string) (time.Duration, string, error) {
	cmd := exec.CommandContext(ctx, "bash", "-c", script)
	cmd.Dir, cmd.Env = dir, []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C.UTF-8", "HOME=" + dir}
	began := time.Now()
	out, err := cmd.Output()
	return time.Since(began), string(out), err
}

// A peer is what just-bash took for the jobs; a job that it cannot do has none.
type peer []struct {
	Median float64 `json:"median"` // ms
	Error  string  `json:"error"`
}

func (p peer) told(i int, ours time.Duration) string {
	if i >= len(p) {
		return "not measured"
	}
	if p[i].Error != "" {
		return "fails (" + p[i].Error + ")"
	}
	return fmt.Sprintf("%.2f ms (%.1f)", p[i].Median, p[i].Median/(float64(ours)/float64(time.Millisecond)))
}

// justBash has the other shell run the jobs, in its own process.
func justBash(ctx context.Context, o options, dir string) (peer, error) {
	type asked struct {
		Dir     string   `json:"dir"`
		Scripts []string `json:"scripts"`
		Want    []string `json:"want"`
		Repeats int      `json:"repeats"`
	}
	a := asked{Dir: dir, Repeats: repeats}
	for _, j := range jobs() {
		want := j.check
		if want == "" {
			var err error
			if _, want, err = realBash(ctx, dir, j.script); err != nil {
				return nil, err
			}
		}
		a.Scripts, a.Want = append(a.Scripts, j.script), append(a.Want, want)
	}
	in, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(o.peers, "node"), filepath.Join(o.peers, "justbash.mjs"))
	cmd.Stdin = bytes.NewReader(in)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("just-bash: %w\n%s", err, &stderr)
	}
	var p peer
	if err := json.Unmarshal(out, &p); err != nil {
		return nil, fmt.Errorf("just-bash: %w", err)
	}
	return p, nil
}

// smallThings measures making boxes, echo, and idle memory.
func smallThings(ctx context.Context) (_ []row, err error) {
	d, err := sim.New(sim.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	var fresh, same samples
	for range 2000 {
		began := time.Now()
		sb, err := d.Create(ctx, paddock.Spec{})
		if err != nil {
			return nil, err
		}
		var out bytes.Buffer
		p, err := sb.Start(ctx, paddock.Cmd{Args: []string{"bash", "-c", "echo hi"}, Output: paddock.Output{Stdout: &out}})
		if err != nil {
			return nil, err
		}
		if _, err := p.Wait(ctx); err != nil || out.String() != "hi\n" {
			return nil, fmt.Errorf("echo says %q: %w", &out, err)
		}
		fresh = append(fresh, time.Since(began))
		if err := sb.Remove(ctx); err != nil {
			return nil, err
		}
	}
	sb, err := d.Create(ctx, paddock.Spec{})
	if err != nil {
		return nil, err
	}
	s, err := sim.OpenSession(ctx, sb, paddock.Cmd{})
	if err != nil {
		return nil, err
	}
	for range 5000 {
		began := time.Now()
		var out bytes.Buffer
		if _, err := s.Run(ctx, sim.Script{Text: "echo hi", Stdout: &out}); err != nil {
			return nil, err
		}
		same = append(same, time.Since(began))
	}
	if err := s.Close(); err != nil {
		return nil, err
	}
	idle, err := idleBoxes(ctx, d)
	if err != nil {
		return nil, err
	}
	return []row{
		{what: "sim: a new box and `echo hi`, in process", p50: us(fresh.p50()), p99: us(fresh.p99()), runs: len(fresh)},
		{what: "sim: `echo hi` in a session, in process", p50: us(same.p50()), p99: us(same.p99()), runs: len(same)},
		{what: "sim: memory of an idle box (1,000 of them; each has run a command and holds a file)", p50: fmt.Sprintf("%.1f KiB", float64(idle)/1024), runs: 1000},
	}, nil
}

func us(d time.Duration) string {
	return fmt.Sprintf("%.1f µs", float64(d)/float64(time.Microsecond))
}

// idleBoxes gives the heap that one of many boxes takes.
func idleBoxes(ctx context.Context, d *sim.Driver) (int64, error) {
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	const boxes = 1000
	for range boxes {
		sb, err := d.Create(ctx, paddock.Spec{})
		if err != nil {
			return 0, err
		}
		p, err := sb.Start(ctx, paddock.Cmd{Args: []string{"bash", "-c", "echo kept > file; cat file"}})
		if err != nil {
			return 0, err
		}
		if _, err := p.Wait(ctx); err != nil {
			return 0, err
		}
	}
	return (heap() - before) / boxes, nil
}
