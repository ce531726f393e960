package cli

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/monitor"
	"github.com/paddock-sandbox/paddock/internal/policy"
	"github.com/paddock-sandbox/paddock/internal/step"
)

// hostOf makes a directory that the sandbox can write, and one for the judge.
func hostOf(t *testing.T, env map[string]string) (a *App, p *plan, work, away string, said *bytes.Buffer) {
	t.Helper()
	dir, said := t.TempDir(), &bytes.Buffer{}
	work, away = filepath.Join(dir, "work"), filepath.Join(dir, "away")
	for _, d := range []string{work + "/.venv/bin", away + "/bin"} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	a = &App{Stderr: said, Lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	p = &plan{spec: paddock.Spec{Mounts: []paddock.Mount{{Source: work, Target: "/work", Write: true}}}, host: policy.Host{Dir: work, Home: work}}
	return a, p, work, away, said
}

func plainScript(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestAJudgeFindsNoProgramOfTheSandbox(t *testing.T) {
	env := map[string]string{}
	a, p, work, away, said := hostOf(t, env)
	if err := os.Symlink(work+"/.venv/bin", away+"/linked"); err != nil {
		t.Fatal(err)
	}
	env["PATH"] = strings.Join([]string{work + "/.venv/bin", away + "/linked", work + "/later", "bin", "", away + "/bin", os.Getenv("PATH")}, ":")
	env["HOME"], env["TMPDIR"], env["KEY"], env["PYTHONPATH"] = work, work+"/tmp", "sk:/1", "/usr/lib/x:"+work+"/lib"
	plainScript(t, work+"/.venv/bin/answers", "#!/bin/sh\ntouch '"+away+"/escaped'\necho '{\"verdict\":\"allow\"}'\n")
	plainScript(t, away+"/bin/answers", "#!/bin/sh\necho '{\"verdict\":\"deny\",\"reason\":\"'$HOME,$TMPDIR,$KEY,$PYTHONPATH'\"}'\n")
	plainScript(t, away+"/judge", "#!/usr/bin/env answers\n")
	j, err := a.commandJudge(&policy.Monitor{Command: []string{away + "/judge"}, Env: []string{"KEY", "PYTHONPATH"}}, p)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := j.Judge(t.Context(), nil)
	if err != nil || answer.Verdict != monitor.Deny || answer.Reason != "/dev/null,,sk:/1,/usr/lib/x" {
		t.Errorf("%+v, %v", answer, err)
	}
	if _, err := os.Stat(away + "/escaped"); err == nil {
		t.Error("a program of the sandbox ran on the host")
	}
	for _, name := range []string{"PATH=" + work + "/.venv/bin", "PATH=" + away + "/linked", "PATH=" + work + "/later", "HOME=" + work, "TMPDIR=" + work + "/tmp", "PYTHONPATH=" + work + "/lib"} {
		if !strings.Contains(said.String(), name) {
			t.Errorf("%q is not told of in %q", name, said)
		}
	}
}

func TestAJudgeIsOutOfReachOnItsWholeWay(t *testing.T) {
	a, p, work, away, _ := hostOf(t, nil)
	plainScript(t, away+"/judge", "#!/bin/sh\n")
	plainScript(t, work+"/judge", "#!/bin/sh\n")
	plainScript(t, away+"/of-work", "#!"+work+"/judge\n")
	for link, to := range map[string]string{work + "/link": away, away + "/over": work + "/link/judge", away + "/same": "judge", away + "/up": "../work/judge"} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	sh := "/bin/sh"
	for _, bad := range [][]string{
		{work + "/judge"}, {work + "/link/judge"}, {away + "/over"}, {away + "/up"}, {away + "/of-work"}, {sh, away + "/over"}, {sh, work + "/later"}, {sh, "judge"},
		{sh, "--file=" + work + "/judge"}, {sh, "--file=" + work + "/later"}, {sh, away + "/../work/judge"},
	} {
		if _, err := a.commandJudge(&policy.Monitor{Command: bad}, p); !errors.Is(err, paddock.Denied) {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for _, good := range [][]string{{away + "/judge"}, {away + "/same"}, {sh, away + "/judge", "--strict", "a=b", work}} {
		if _, err := a.commandJudge(&policy.Monitor{Command: good}, p); err != nil {
			t.Errorf("%q: %v", good, err)
		}
	}
	p.spec.Mounts = []paddock.Mount{{Source: away + "/judge", Target: "/judge", Write: true}}
	if _, err := a.commandJudge(&policy.Monitor{Command: []string{away + "/same"}}, p); !errors.Is(err, paddock.Denied) {
		t.Errorf("a file that is mounted itself: %v", err)
	}
}

func monitoringOf(t *testing.T, o monitor.Options) (*monitoring, *bytes.Buffer) {
	t.Helper()
	said := &bytes.Buffer{}
	w := &monitoring{a: &App{Stderr: said}, turn: make(chan struct{}, 1), granted: map[grant]bool{}, m: monitor.New(o)}
	w.ctx, w.cancel = context.WithCancel(t.Context())
	t.Cleanup(w.close)
	w.m.Begin([]string{"make"}, "")
	return w, said
}

func TestAChangeThatTheMonitorRefusedIsRefusedAgain(t *testing.T) {
	w, _ := monitoringOf(t, monitor.Options{Measured: monitor.Measured{Files: true}})
	for i := range 3 {
		err := (&watcher{w}).Change(step.Watched{Path: ".github/workflows/ci.yml", Verb: step.Edited})
		if !errors.Is(err, paddock.Denied) || strings.Count(err.Error(), "(rule write-ci)") != 1 {
			t.Errorf("attempt %d: %v", i, err)
		}
	}
	if n := w.m.Counts(); n[monitor.Ask] != 1 || n[monitor.Deny] != 2 {
		t.Errorf("%v", n)
	}
	exchanged := step.Watched{Path: ".github/workflows/ci.yml", From: "evil", Verb: step.Moved, Half: 2}
	if err := (&watcher{w}).Change(exchanged); !errors.Is(err, paddock.Denied) {
		t.Errorf("an exchange: %v", err)
	}
}

// broken fails with a text that is not for the sandbox.
type broken struct{}

func (broken) Kind() string { return "command" }

func (broken) Judge(context.Context, []byte) (monitor.Answer, error) {
	return monitor.Answer{}, errors.New("/opt/judge: exit status 1 (it said: MARKER)")
}

func TestWordsOfABrokenJudgeAreForTheOwner(t *testing.T) {
	w, said := monitoringOf(t, monitor.Options{Judge: broken{}, Measured: monitor.Measured{Files: true, Network: true}})
	j := &judged{w}
	for _, secret := range []string{"", "TOKEN"} {
		answer := j.Judge(t.Context(), gatewayclient.Question{Host: "a.example", Port: 443, Secret: secret})
		if answer.Allow || strings.Contains(answer.Reason, "MARKER") || strings.Contains(answer.Reason, "/opt") || !strings.Contains(answer.Reason, "gave no verdict") {
			t.Errorf("%+v", answer)
		}
	}
	w.over(paddock.Exit{}, nil)
	if !strings.Contains(said.String(), "refused 2 times") || !strings.Contains(said.String(), "MARKER") {
		t.Errorf("the owner is told %q", said)
	}
	w, _ = monitoringOf(t, monitor.Options{NoRules: true, Judge: broken{}, Measured: monitor.Measured{Files: true, Network: true}})
	if err := (&watcher{w}).Change(step.Watched{Path: "AGENTS.md", Verb: step.Created, Done: true}); err != nil {
		t.Error(err)
	}
	if !strings.Contains(w.ended(), "MARKER") {
		t.Errorf("ended: %q", w.ended())
	}
	if answer := (&judged{w}).Judge(t.Context(), gatewayclient.Question{Host: "a.example"}); answer.Allow || strings.Contains(answer.Reason, "MARKER") {
		t.Errorf("after it ended the sandbox: %+v", answer)
	}
}
