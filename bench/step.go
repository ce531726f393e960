//go:build linux

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// stepScripts are what a command does in a workspace whose changes are recorded, and in one whose are not. Each gets a
// number of its own.
func stepScripts() []task {
	return []task{
		{what: "a command that changes nothing, workspace of 100,000 files", script: `true`},
		{what: "a command that changes 10 files", script: `for i in 0 1 2 3 4 5 6 7 8 9; do echo $n >> $work/changed$i; done`},
		{what: "untar of 5,000 files", script: `mkdir $work/out; tar xf $data/files.tar -C $work/out`, after: `rm -rf $work/out`},
		{what: "removal of 10,000 files", script: `rm -rf $work/many`, after: `mkdir $work/many; tar xf $data/many.tar -C $work/many`},
		{what: "`go build` after a change, warm", program: goProgram,
			script: `cd $work/prog; echo "package main; const nonce = $n" > nonce.go; HOME=$tmp GOCACHE=/tmp/gocache GOFLAGS= GOPROXY=off ` + goProgram + ` build -o $work/prog/out .`},
		{what: "`npm install` of 40 packages with 50 files each", program: npmProgram,
			script: `cd $work/web; HOME=$tmp npm_config_cache=$tmp/npm ` + npmProgram + ` install --offline --no-audit --no-fund --silent`, after: `rm -rf $work/web/node_modules $work/web/package-lock.json`},
	}
}

// npmProgram is the npm that every sandbox sees, as python3 is.
const npmProgram = "/usr/bin/npm"

// prepareSteps fills the workspace of stepScripts. The cache of Go is made on the host, because a first build takes minutes.
const prepareSteps = `mkdir $work/many $work/prog; tar xf $data/many.tar -C $work/many; cp $data/main.go $work/prog; echo "module prog" > $work/prog/go.mod
cp -r $data/web $work/web; test ! -d $data/gocache || cp -r $data/gocache /tmp/gocache`

// stepData makes what prepareSteps reads.
func stepData(ctx context.Context, data string) error {
	web := filepath.Join(data, "web")
	if err := os.MkdirAll(web, 0o755); err != nil {
		return err
	}
	if err := npmPackages(web, 40, 50); err != nil {
		return err
	}
	for name, content := range map[string][]byte{"files.tar": archive(5000), "many.tar": archive(10_000), "main.go": []byte(mainGo)} {
		if err := os.WriteFile(filepath.Join(data, name), content, 0o644); err != nil {
			return err
		}
	}
	if _, err := os.Stat(goProgram); err != nil {
		return nil // its task is left out
	}
	work, err := os.MkdirTemp("", "paddock-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	return onHost(work, data, work).run(ctx, `mkdir $work/prog; cp $data/main.go $work/prog; cd $work/prog; echo "module prog" > go.mod; echo "package main; const nonce = 0" > nonce.go
HOME=$work GOCACHE=$data/gocache GOFLAGS= GOPROXY=off `+goProgram+` build -o $work/out .`)
}

// npmPackages makes a project that depends on so many packages, which lie beside it.
func npmPackages(dir string, packages, files int) error {
	var needs []string
	for i := range packages {
		var b bytes.Buffer
		zip := gzip.NewWriter(&b)
		w := tar.NewWriter(zip)
		name := fmt.Sprintf("p%d", i)
		add := func(path, text string) { // writing to memory does not fail
			_ = w.WriteHeader(&tar.Header{Name: "package/" + path, Mode: 0o644, Size: int64(len(text))})
			_, _ = w.Write([]byte(text))
		}
		add("package.json", fmt.Sprintf(`{"name":%q,"version":"1.0.0"}`, name))
		for j := range files {
			add(fmt.Sprintf("lib/file%d.js", j), strings.Repeat("module.exports = "+name+"\n", 50))
		}
		_, _ = w.Close(), zip.Close()
		if err := os.WriteFile(filepath.Join(dir, name+".tgz"), b.Bytes(), 0o644); err != nil {
			return err
		}
		needs = append(needs, fmt.Sprintf(`%q:"file:./%s.tgz"`, name, name))
	}
	text := `{"name":"web","version":"1.0.0","dependencies":{` + strings.Join(needs, ",") + `}}`
	return os.WriteFile(filepath.Join(dir, "package.json"), []byte(text), 0o644)
}

// measureSteps compares commands whose changes are recorded with those whose are not, in turns.
func measureSteps(ctx context.Context, o options) (_ []row, err error) {
	top, err := os.MkdirTemp("", "paddock-bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(top)
	data := filepath.Join(top, "data")
	if err := os.Mkdir(data, 0o755); err != nil {
		return nil, err
	}
	if err := stepData(ctx, data); err != nil {
		return nil, err
	}
	var rows []row
	for _, t := range tiers() {
		more, err := stepsOf(ctx, o, t, filepath.Join(top, string(t.name)), data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", t.name, err)
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// stepsOf measures one tier.
func stepsOf(ctx context.Context, o options, t tier, top, data string) (_ []row, err error) {
	dir := filepath.Join(top, "steps")
	journal, err := step.Open(dir, step.Options{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	var places, begins []place
	for _, name := range []string{"plain", "recorded"} {
		work := filepath.Join(top, name)
		if err := emptyFiles(work, 100_000); err != nil {
			return nil, err
		}
		with, undo := o, paddock.UndoOff
		if name == "recorded" {
			with.steps, undo = dir, paddock.UndoOn
		}
		d, err := t.open(with, "")
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, d.Close()) }()
		p, remove, err := inSandbox(ctx, d, t, work, data, undo)
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, remove()) }()
		if err := p.run(ctx, prepareSteps); err != nil {
			return nil, err
		}
		begins = append(begins, place{name, func(ctx context.Context, script string) error {
			one, remove, err := inSandbox(ctx, d, t, work, data, undo)
			if err != nil {
				return err
			}
			return errors.Join(one.run(ctx, script), remove())
		}})
		n := 0
		run := p.run
		p.run = func(ctx context.Context, script string) error {
			n++
			return run(ctx, fmt.Sprintf("n=%d; tmp=/tmp; %s", n, script))
		}
		places = append(places, p)
	}
	begin, err := recordedBeside(ctx, t, task{what: "a sandbox of its own for `true`, workspace of 100,000 files", script: "true"}, begins)
	if err != nil {
		return nil, err
	}
	rows := []row{begin}
	for _, j := range stepScripts() {
		if j.program != "" {
			if _, err := os.Stat(j.program); err != nil {
				fmt.Fprintf(os.Stderr, "%s is left out: %v\n", j.what, err)
				continue
			}
		}
		r, err := recordedBeside(ctx, t, j, places)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	undo, err := undoOf(ctx, journal, places[1])
	if err != nil {
		return nil, err
	}
	rows = append(rows, row{what: string(t.name) + ": undo of the removal of 10,000 files", p50: ms(undo.p50()), p99: ms(undo.quantile(1)), runs: len(undo)})
	if t.name != paddock.Jail {
		return rows, nil
	}
	growth, err := growthOf(ctx, o, t, top)
	if err != nil {
		return nil, fmt.Errorf("a session of %d steps: %w", sessionSteps, err)
	}
	return append(rows, growth), nil
}

// sessionSteps is about what an agent does in a day.
const sessionSteps = 1000

// sessionScript is a step of such a session, in the repository of the checkout that this program runs in.
func sessionScript(i int) string {
	switch {
	case i%100 == 0:
		return `git checkout -q -b b$n`
	case i%20 == 1:
		return `git commit -q -a --allow-empty -m "step $n"`
	case i%20 == 7: // what a build writes
		return `mkdir -p bin; head -c 4000000 /dev/urandom > bin/out`
	case i%20 == 13: // what a formatter touches
		return `for f in $(git ls-files '*.go' | sed -n "$((n % 30 + 1)),+20p"); do sed -i -e 's/[ \t]*$//' "$f"; done`
	case i%5 == 4:
		return `git status --short >/dev/null; git diff --stat >/dev/null`
	}
	return `f=$(git ls-files '*.go' | sed -n "$((n % 700 + 1))p"); echo "// step $n" >> "$f"`
}

// growthOf tells how much a journal takes on the disk after a session, beside the contents that its steps replaced, each time counted.
func growthOf(ctx context.Context, o options, t tier, top string) (_ row, err error) {
	dir := filepath.Join(top, "session-steps")
	journal, err := step.Open(dir, step.Options{})
	if err != nil {
		return row{}, err
	}
	defer func() { err = errors.Join(err, journal.Close()) }()
	work := filepath.Join(top, "session")
	if out, err := exec.CommandContext(ctx, "git", "clone", "-q", "--no-hardlinks", ".", work).CombinedOutput(); err != nil {
		return row{}, fmt.Errorf("%w\n%s", err, out)
	}
	o.steps = dir
	d, err := t.open(o, "")
	if err != nil {
		return row{}, err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	p, remove, err := inSandbox(ctx, d, t, work, top, paddock.UndoOn)
	if err != nil {
		return row{}, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	for i := range sessionSteps {
		if err := p.run(ctx, fmt.Sprintf("export HOME=/tmp GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a; n=%d; cd $work; %s", i, sessionScript(i))); err != nil {
			return row{}, fmt.Errorf("step %d: %w", i, err)
		}
	}
	list, err := journal.List(ctx, step.Filter{})
	if err != nil {
		return row{}, err
	}
	var changed int64
	for _, r := range list {
		changed += r.Bytes
	}
	size, err := onDisk(dir)
	if err != nil {
		return row{}, err
	}
	return row{
		what: fmt.Sprintf("%s: journal on the disk after %d steps in a repository", t.name, len(list)), p50: fmt.Sprintf("%.1f MB", float64(size)/1e6), p99: "–", runs: 1,
		ratio: fmt.Sprintf("contents that changed %.1f MB: %.2f times", float64(changed)/1e6, float64(size)/float64(changed)),
	}, nil
}

// onDisk returns the bytes that the files below a directory occupy.
func onDisk(dir string) (size int64, err error) {
	err = filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		var st syscall.Stat_t
		if err := syscall.Lstat(path, &st); err != nil {
			return err
		}
		size += st.Blocks * 512
		return nil
	})
	return size, err
}

// recordedBeside measures a task in two places in turns: one whose changes are not recorded, and one whose are.
func recordedBeside(ctx context.Context, t tier, j task, places []place) (row, error) {
	took, err := inTurns(ctx, j, places)
	if err != nil {
		return row{}, fmt.Errorf("%s: %w", j.what, err)
	}
	plain, recorded := took[0].p50(), took[1]
	return row{
		what: string(t.name) + ": " + j.what, p50: ms(recorded.p50()), p99: ms(recorded.quantile(1)), runs: len(recorded),
		ratio: fmt.Sprintf("not recorded %s; %+.2f ms, %.2f times", ms(plain), float64(recorded.p50()-plain)/float64(time.Millisecond), float64(recorded.p50())/float64(plain)),
	}, nil
}

// undoOf removes files in a sandbox, and measures how long it takes to bring them back.
func undoOf(ctx context.Context, journal *step.Journal, p place) (samples, error) {
	var took samples
	for range repeats {
		if err := p.run(ctx, `rm -rf $work/many`); err != nil {
			return nil, err
		}
		list, err := journal.List(ctx, step.Filter{Last: 1})
		if err != nil {
			return nil, err
		}
		began := time.Now()
		result, err := journal.Undo(ctx, step.Request{Steps: []int64{list[0].Number}})
		took = append(took, time.Since(began))
		if err != nil {
			return nil, err
		}
		if len(result.Conflicts) > 0 {
			return nil, fmt.Errorf("%d conflicts, such as %q: %s: %w", len(result.Conflicts), result.Conflicts[0].Path, result.Conflicts[0].Why, paddock.Internal)
		}
	}
	return took, nil
}

// emptyFiles makes a directory with so many empty files.
func emptyFiles(dir string, files int) error {
	for i := range files {
		sub := filepath.Join(dir, "large", fmt.Sprintf("dir%d", i/100))
		if i%100 == 0 {
			if err := os.MkdirAll(sub, 0o755); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(sub, fmt.Sprintf("file%d", i)), nil, 0o644); err != nil {
			return err
		}
	}
	return nil
}
