//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
)

const (
	e2bCreations   = 50                     // one after another, at most
	e2bInterpreted = 10                     // sandboxes that interpret code
	e2bPause       = 400 * time.Millisecond // between sandboxes: what a pool needs to make the next
	e2bShelf       = "e2b:jail=8"
	e2bTransfers   = 3
	e2bBytes       = 960 << 20 // a sandbox of base has a disk of 1 GiB
	e2bPrinted     = 50_000_000
	e2bForks       = 10
	e2bSampled     = 20 * time.Millisecond // between looks at the memory of a server that is sent files
)

// measureE2B measures `paddock serve` as programs written for E2B find it: their
// own client for JavaScript, and for files the requests that it makes.
func measureE2B(ctx context.Context, o options) ([]row, error) {
	scripts, err := plantE2B(o)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scripts)
	var rows []row
	for _, way := range []struct {
		what  string
		flags []string
	}{{"a jail", nil}, {"a warm jail", []string{"--warm", e2bShelf}}} {
		more, err := e2bServer(ctx, o, scripts, way.what, way.flags)
		rows = append(rows, more...)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", way.what, err)
		}
	}
	more, err := e2bFiles(ctx, o)
	if rows = append(rows, more...); err != nil {
		return rows, err
	}
	more, err = e2bTiers(ctx, o, scripts)
	return append(rows, more...), err
}

// e2bTiers measures what differs much between tiers: large output, large files and forks.
func e2bTiers(ctx context.Context, o options, scripts string) (_ []row, err error) {
	s, _, err := startServer(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop(ctx)) }()
	var rows []row
	for _, tier := range []string{"jail", "gvisor", "microvm"} {
		env := []string{"TEMPLATE=base:" + tier, fmt.Sprintf("BYTES=%d", e2bPrinted)}
		took, err := s.e2bScript(ctx, scripts, "transfer", e2bTransfers, env...)
		if err != nil {
			return rows, fmt.Errorf("%s: %w", tier, err)
		}
		for _, k := range []struct{ name, words string }{
			{"printed", "%s: 50 MB that a command prints, by E2B's `commands.run`"}, {"read", "%s: a file of 50 MB, by E2B's `files.read`"},
		} {
			t := took[k.name]
			rows = append(rows, row{what: fmt.Sprintf(k.words, tier), p50: rate(e2bPrinted, t.p50()), p99: rate(e2bPrinted, t.p99()), runs: len(t)})
		}
		if tier == "jail" { // which has no forks
			continue
		}
		if took, err = s.e2bScript(ctx, scripts, "fork", e2bForks, env...); err != nil {
			return rows, fmt.Errorf("%s: %w", tier, err)
		}
		for _, k := range []struct{ name, words string }{
			{"forked", "%s: two forks of a sandbox, by E2B's `fork`"}, {"answered", "%s: the same, until each has run `echo hi`"},
		} {
			t := took[k.name]
			rows = append(rows, row{what: fmt.Sprintf(k.words, tier), p50: ms(t.p50()), p99: ms(t.p99()), runs: len(t)})
		}
	}
	return rows, nil
}

// plantE2B copies the script to where it finds the clients.
func plantE2B(o options) (dir string, err error) {
	sdk, err := filepath.Abs(filepath.Join(o.sdk, "js", "node_modules"))
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(sdk); err != nil {
		return "", fmt.Errorf("make sdk installs E2B's clients: %w", err)
	}
	script, err := os.ReadFile("bench/e2b.mjs")
	if err != nil {
		return "", err
	}
	if dir, err = os.MkdirTemp("", "paddock-bench-"); err != nil {
		return "", err
	}
	err = os.WriteFile(filepath.Join(dir, "e2b.mjs"), script, 0o600)
	return dir, errors.Join(err, os.Symlink(sdk, filepath.Join(dir, "node_modules")))
}

// e2bServer measures sandboxes of one server: one after another, many at once, and
// the code interpreter.
func e2bServer(ctx context.Context, o options, scripts, what string, flags []string) (_ []row, err error) {
	s, _, err := startServer(ctx, o, flags...)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop(ctx)) }()
	time.Sleep(4 * settled) // a pool fills
	var rows []row
	creations := min(o.rounds, e2bCreations)
	took, err := s.e2bScript(ctx, scripts, "create", creations)
	if err != nil {
		return rows, err
	}
	for _, k := range []struct{ name, words string }{
		{"created", "%s for E2B's client: `Sandbox.create()` (95 %% within %s)"},
		{"first command", "%s for E2B's client: `Sandbox.create()` to the end of the first `commands.run('echo hi')` (95 %% within %s)"},
	} {
		t := took[k.name]
		rows = append(rows, row{what: fmt.Sprintf(k.words, what, ms(t.quantile(0.95))), p50: ms(t.p50()), p99: ms(t.p99()), runs: len(t)})
	}
	if took, err = s.e2bScript(ctx, scripts, "code", min(o.rounds, e2bInterpreted)); err != nil {
		return rows, err
	}
	for _, name := range []string{"first cell", "next cell"} {
		t := took[name]
		rows = append(rows, row{what: fmt.Sprintf("%s for E2B's client: the %s that `runCode` runs", what, name), p50: ms(t.p50()), p99: ms(t.p99()), runs: len(t)})
	}
	if len(flags) > 0 { // a pool is of few, and is measured above
		return rows, nil
	}
	if took, err = s.e2bScript(ctx, scripts, "many", o.boxes); err != nil {
		return rows, err
	}
	t := took["first command"]
	return append(rows, row{
		what: fmt.Sprintf("%d jails at once for E2B's client, until each has run a command (all: %s)", len(t), ms(took["all"].p50())),
		p50:  ms(t.p50()), p99: ms(t.p99()), runs: len(t),
	}), nil
}

// e2bScript runs a part of the script, with more variables, and gives the times that it tells.
func (s *served) e2bScript(ctx context.Context, scripts, part string, count int, env ...string) (map[string]samples, error) {
	cmd := exec.CommandContext(ctx, "node", "e2b.mjs", part, fmt.Sprint(count))
	cmd.Dir, cmd.WaitDelay = scripts, 5*time.Second
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + scripts, "E2B_API_KEY=" + s.key, "E2B_API_URL=" + s.address, "E2B_SANDBOX_URL=" + s.address,
		"TEMPLATE=base:jail", "CODE_TEMPLATE=code-interpreter-v1:jail", fmt.Sprintf("PAUSE=%d", e2bPause.Milliseconds()),
	}
	cmd.Env = append(cmd.Env, env...) // the last of a name counts
	var wrong bytes.Buffer
	cmd.Stderr = &wrong
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("e2b.mjs %s: %w\n%s", part, err, wrong.Bytes())
	}
	took := map[string]samples{}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		var told struct {
			What string    `json:"what"`
			MS   []float64 `json:"ms"`
		}
		if err := json.Unmarshal(lines.Bytes(), &told); err != nil {
			return nil, fmt.Errorf("e2b.mjs %s says %q: %w", part, lines.Text(), err)
		}
		for _, t := range told.MS {
			took[told.What] = append(took[told.What], time.Duration(t*float64(time.Millisecond)))
		}
	}
	return took, nil
}

// e2bFiles measures a large file that goes in and comes back, by the requests that
// E2B's client makes.
func e2bFiles(ctx context.Context, o options) (_ []row, err error) {
	s, _, err := startServer(ctx, o)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.stop(ctx)) }()
	var made struct {
		ID    string `json:"sandboxID"`
		Token string `json:"envdAccessToken"`
	}
	err = s.e2bAsk(ctx, http.MethodPost, "/v2/sandboxes", http.Header{"X-Api-Key": {s.key}, "Content-Type": {"application/json"}},
		bytes.NewReader([]byte(`{"templateID": "base:jail", "timeout": 3600}`)), func(r io.Reader) error { return json.NewDecoder(r).Decode(&made) })
	if err != nil {
		return nil, err
	}
	h := http.Header{
		"E2b-Sandbox-Id": {made.ID}, "E2b-Sandbox-Port": {"49983"}, "X-Access-Token": {made.Token}, "Content-Type": {"application/octet-stream"},
	}
	before := s.memory()
	peak := s.watchMemory(ctx)
	defer func() { peak() }()
	var up, down samples
	for range e2bTransfers {
		began := time.Now()
		if err := s.e2bAsk(ctx, http.MethodPost, "/files?path=/tmp/large", h, io.LimitReader(zeros{}, e2bBytes), nil); err != nil {
			return nil, err
		}
		up = append(up, time.Since(began))
		began = time.Now()
		err := s.e2bAsk(ctx, http.MethodGet, "/files?path=/tmp/large", h, nil, func(r io.Reader) error {
			n, err := io.Copy(io.Discard, r)
			if err == nil && n != e2bBytes {
				err = fmt.Errorf("%d bytes came back of %d: %w", n, int64(e2bBytes), paddock.Internal)
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		down = append(down, time.Since(began))
	}
	most := peak()
	return []row{
		{what: "960 MiB into a jail by E2B's `POST /files`", p50: rate(e2bBytes, up.p50()), p99: rate(e2bBytes, up.p99()), runs: len(up)},
		{what: "960 MiB out of it by E2B's `GET /files`", p50: rate(e2bBytes, down.p50()), p99: rate(e2bBytes, down.p99()), runs: len(down)},
		{what: fmt.Sprintf("memory of that server (RSS): %s before, and so much more at the most", mib(before)), p50: mib(most - before), runs: 1},
	}, nil
}

// rate is what the time of a transfer says.
func rate(bytes int64, took time.Duration) string {
	return fmt.Sprintf("%.0f MB/s", float64(bytes)/1e6/took.Seconds())
}

// e2bAsk makes a request, and reads the answer of one that was granted.
func (s *served) e2bAsk(ctx context.Context, method, path string, h http.Header, body io.Reader, read func(io.Reader) error) error {
	req, err := http.NewRequestWithContext(ctx, method, s.address+path, body)
	if err != nil {
		return err
	}
	req.Header = h
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode/100 != 2 {
		said, _ := io.ReadAll(io.LimitReader(res.Body, 1<<10))
		return fmt.Errorf("%s %s: %s: %s", method, path, res.Status, said)
	}
	if read == nil {
		read = func(r io.Reader) error {
			_, err := io.Copy(io.Discard, r)
			return err
		}
	}
	return read(res.Body)
}

// watchMemory looks at the memory of a server again and again, until it is asked for
// the most that it saw. It can be asked twice.
func (s *served) watchMemory(ctx context.Context) func() int64 {
	ctx, cancel := context.WithCancel(ctx)
	most := s.memory()
	var wg sync.WaitGroup
	wg.Go(func() {
		tick := time.NewTicker(e2bSampled)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				most = max(most, s.memory())
			}
		}
	})
	return func() int64 {
		cancel()
		wg.Wait()
		return max(most, s.memory())
	}
}
