package audit_test

import (
	"encoding/json"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/audit"
)

func TestTextIsCutBetweenRunesAndSaysSo(t *testing.T) {
	for _, row := range []struct {
		name, in string
		limit    int
		want     string
	}{
		{"short", "abc", 8, "abc"},
		{"empty", "", 8, ""},
		{"exact", "abcdefgh", 8, "abcdefgh"},
		{"long", "abcdefghi", 8, "abcde…"},
		{"in the middle of a rune", "abcdäöü", 8, "abcd…"},
		{"not UTF-8", "a\xffb", 8, "a\ufffdb"},
		{"grows when it is repaired", "a\xffb\xffc\xffd", 8, "a\ufffdb…"},
		{"half a rune at the limit", "abcdefg\xc3", 8, "abcde…"},
		{"long, and shrinks when it is repaired", strings.Repeat("\xff", 99), 8, "\ufffd…"},
		{"nothing fits but the mark", "abcdef", 3, "…"},
	} {
		t.Run(row.name, func(t *testing.T) {
			if got := audit.Text(row.in, row.limit); got != row.want {
				t.Errorf("Text(%q, %d) = %q, want %q", row.in, row.limit, got, row.want)
			}
		})
	}
}

func TestArgumentsHaveABoundInNumberAndInBytes(t *testing.T) {
	many := audit.Arguments(make([]string, audit.MaxCount+1))
	if len(many) != audit.MaxCount || many[len(many)-1] != audit.Cut {
		t.Errorf("%d arguments, the last is %q", len(many), many[len(many)-1])
	}
	if all := audit.Arguments(make([]string, audit.MaxCount)); len(all) != audit.MaxCount || all[len(all)-1] != "" {
		t.Errorf("%d arguments fit, and %d were kept", audit.MaxCount, len(all))
	}
	long := audit.Arguments([]string{"a", strings.Repeat("b", 2*audit.MaxArgs), "c"})
	if len(long) != 3 || !strings.HasSuffix(long[1], audit.Cut) || long[2] != audit.Cut {
		t.Errorf("a long argument was not cut, or hides that more followed: %d arguments", len(long))
	}
	if n := len(strings.Join(long, "")); n > audit.MaxArgs {
		t.Errorf("%d bytes of arguments", n)
	}
}

func TestSecretsHaveABoundInNumberAndSayWhatIsLeftOut(t *testing.T) {
	for _, n := range []int{audit.MaxNames, audit.MaxNames + 1, 1000} {
		list := audit.Event{Network: &audit.Flow{Secrets: make([]string, n)}}.Clean().Network.Secrets
		if cut := list[len(list)-1] == audit.Cut; len(list) != audit.MaxNames || cut != (n > audit.MaxNames) {
			t.Errorf("of %d names %d were kept, and the last is %q", n, len(list), list[len(list)-1])
		}
	}
}

func TestCleaningSharesNoMemory(t *testing.T) {
	e := audit.Event{Args: []string{"a"}, Exit: &audit.Exit{Code: 1}, Network: &audit.Flow{Host: "a", Secrets: []string{"a"}}, Action: &audit.Action{Who: "a"}}
	c := e.Clean()
	e.Args[0], e.Exit.Code, e.Network.Host, e.Network.Secrets[0], e.Action.Who = "b", 2, "b", "b", "b"
	if c.Action.Who != "a" || c.Args[0] != "a" || c.Exit.Code != 1 || c.Network.Host != "a" || c.Network.Secrets[0] != "a" {
		t.Errorf("a clean event changed with the other: %v %v %v", c.Args, *c.Exit, *c.Network)
	}
}

func TestALineSaysWhatHappened(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 7, time.FixedZone("east", 3600))
	p := audit.Process{PID: 9, Parent: 1, UID: 1000, Name: "sh"}
	for _, row := range []struct {
		event audit.Event
		want  string
	}{
		{
			audit.Event{Kind: audit.Exec, Path: "/bin/ls", Args: []string{"ls", "<&>"}, Dir: "/tmp", Process: p, Dropped: 3},
			`"kind":"exec","dropped":3,"process":{"pid":9,"parent":1,"uid":1000,"name":"sh"},"path":"/bin/ls","args":["ls","<&>"],"dir":"/tmp"}`,
		},
		{
			audit.Event{Kind: audit.Open, Path: "x", Flags: "read", Error: "no such file or directory", Process: audit.Process{PID: 9}},
			`"kind":"open","process":{"pid":9,"uid":0},"path":"x","flags":"read","error":"no such file or directory"}`,
		},
		{audit.Event{Kind: audit.Exited, Exit: &audit.Exit{}, Process: audit.Process{PID: 9}}, `"kind":"exit","process":{"pid":9,"uid":0},"exit":{"code":0}}`},
		{
			audit.Event{Kind: audit.Network, Network: &audit.Flow{Protocol: "http", Host: "a.example", Port: 443, Address: "192.0.2.7:443", Method: "GET", Path: "/x", Verdict: "allow", Sent: 1, Received: 2, Duration: 3, Secrets: []string{"KEY"}}},
			`"kind":"network","network":{"protocol":"http","host":"a.example","port":443,"address":"192.0.2.7:443","method":"GET","path":"/x","verdict":"allow","rule":0,"sent":1,"received":2,"duration":3,"secrets":["KEY"]}}`,
		},
		{
			audit.Event{Kind: audit.Network, Network: &audit.Flow{Protocol: "dns", Host: "b.example", Verdict: "deny", Rule: -1, Reason: "no rule allows b.example", Count: 40}},
			`"kind":"network","network":{"protocol":"dns","host":"b.example","verdict":"deny","rule":-1,"reason":"no rule allows b.example","count":40}}`,
		},
		{
			audit.Event{Kind: audit.Did, Args: []string{"ls"}, Action: &audit.Action{Who: "key:ab", Tenant: "t", From: "192.0.2.1:7", Request: "r", What: "process.start", Target: "9", Result: "denied", Reason: "no", Rule: "scope"}},
			`"kind":"action","args":["ls"],"action":{"who":"key:ab","tenant":"t","from":"192.0.2.1:7","request":"r","what":"process.start","target":"9","result":"denied","reason":"no","rule":"scope"}}`,
		},
		{
			audit.Event{Kind: audit.Started, Start: &audit.Start{
				Tier: "jail", Root: "host", Controls: []audit.Strength{{Control: "seccomp", Strength: "full"}}, Policy: "sha256:ab", Kinds: []string{"network"},
				Paddock: audit.Build{Version: "v1", Revision: "cd", Digest: "sha256:ef"},
			}},
			`"kind":"start","start":{"tier":"jail","root":"host","controls":[{"control":"seccomp","strength":"full"}],"policy":"sha256:ab","kinds":["network"],"paddock":{"version":"v1","revision":"cd","digest":"sha256:ef"}}}`,
		},
		{
			audit.Event{Kind: audit.Stepped, Args: []string{"make"}, Step: &audit.Step{Number: 7, Record: "sha256:ab", Kind: "run", Exit: 2, Changed: 5, Removed: 3, Left: 1, Incomplete: true, Duration: 9, CPU: 8, MemoryPeak: 7}},
			`"kind":"step","args":["make"],"step":{"number":7,"record":"sha256:ab","kind":"run","exit":2,"changed":5,"removed":3,"left":1,"incomplete":true,"duration":9,"cpu":8,"memory_peak":7}}`,
		},
		{
			audit.Event{Kind: audit.Judged, Args: []string{"ls"}, Judgement: &audit.Judgement{Moment: "exec", Step: 1, Verdict: "deny", Judge: "rules", Rule: "delete-all", Reason: "no", Score: 900, Latency: 5}},
			`"kind":"monitor","args":["ls"],"monitor":{"moment":"exec","step":1,"verdict":"deny","judge":"rules","rule":"delete-all","reason":"no","score":900,"latency":5}}`,
		},
		{audit.Event{Kind: audit.Lost, Dropped: 5}, `"kind":"lost","dropped":5}`},
	} {
		row.event.Time, row.event.Sandbox = at, "s1"
		got, err := audit.Line(row.event)
		if err != nil {
			t.Fatal(err)
		}
		if want := `{"time":"2026-02-03T03:05:06.000000007Z","sandbox":"s1",` + row.want + "\n"; string(got) != want {
			t.Errorf("got  %swant %s", got, want)
		}
	}
}

func TestALineCannotDriveATerminal(t *testing.T) {
	const hostile = "\x1b[2J\r\n\x00\x7f\u009b31m\u202egpj.exe\u2028\U000e0041\xff\ufeff"
	line, err := audit.Line(audit.Event{
		Path: hostile, Args: []string{hostile}, Process: audit.Process{Name: hostile},
		Network: &audit.Flow{Host: hostile, Method: hostile, Path: hostile, Reason: hostile},
		Action:  &audit.Action{Who: hostile, Target: hostile, Reason: hostile},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range strings.TrimSuffix(string(line), "\n") {
		if !unicode.IsPrint(r) {
			t.Errorf("the line has %U as it is", r)
		}
	}
	var back audit.Event
	if err := json.Unmarshal(line, &back); err != nil {
		t.Fatal(err)
	}
	if want := strings.ToValidUTF8(hostile, "\ufffd"); back.Path != want {
		t.Errorf("escapes do not give the text back: %q, want %q", back.Path, want)
	}
}

func TestNoEventHasALongerLineThanPromised(t *testing.T) {
	long := strings.Repeat("\x01", 1<<20)
	args := make([]string, 1000)
	args[0] = long
	worst := audit.Event{
		Time: time.Now(), Sandbox: long, Kind: audit.Kind(long), Dropped: math.MaxUint64, Path: long, Dir: long, Flags: long,
		Error: long, Address: long, Child: math.MinInt32, Exit: &audit.Exit{Code: math.MinInt64, Signal: math.MinInt64},
		Process: audit.Process{PID: math.MinInt32, Parent: math.MinInt32, UID: math.MaxUint32, Name: long},
		Network: &audit.Flow{
			Protocol: long, Host: long, Port: math.MaxUint16, Address: long, Method: long, Path: long, Verdict: long, Rule: math.MinInt64, Reason: long,
			Sent: math.MinInt64, Received: math.MinInt64, Duration: math.MinInt64, Secrets: slices.Repeat([]string{long}, 1000), Count: math.MinInt64,
		},
		Action: &audit.Action{Who: long, Tenant: long, From: long, Request: long, What: long, Target: long, Result: long, Reason: long, Rule: long},
		Judgement: &audit.Judgement{
			Moment: long, Step: math.MinInt64, Verdict: long, Judge: long, Rule: long, Reason: long, Score: math.MinInt64, Latency: math.MinInt64, Cached: true, Failed: true,
			Answered: long, Host: long, Port: math.MaxUint16, Secret: long,
		},
		Start: &audit.Start{
			Tier: long, Root: long, Snapshot: long, Controls: slices.Repeat([]audit.Strength{{Control: long, Strength: long}}, 1000), Policy: long, PolicyFile: long,
			Kinds: slices.Repeat([]string{long}, 1000), Paddock: audit.Build{Version: long, Revision: long, Modified: true, Digest: long},
		},
	}
	for _, worst.Args = range [][]string{args, {long}, make([]string, 1000)} {
		line, err := audit.Line(worst)
		if err != nil || len(line) > audit.MaxLine {
			t.Errorf("%d bytes, promised %d, %v", len(line), audit.MaxLine, err)
		}
	}
}

func FuzzCleanIsBoundedValidAndStable(f *testing.F) {
	f.Add("plain", 0)
	f.Add("\xff\xfe\x00…", 200)
	f.Add(strings.Repeat("ä", 5000), 3)
	f.Add(strings.Repeat("\xff", 5000), 3)
	f.Add(strings.Repeat("\x00\xc3", 5000), 200)
	f.Fuzz(func(t *testing.T, s string, n int) {
		args := make([]string, n&0xff)
		for i := range args {
			args[i] = s[min(len(s), i):]
		}
		c := audit.Event{Path: s, Args: args, Process: audit.Process{Name: s}, Network: &audit.Flow{Host: s, Path: s, Reason: s}, Action: &audit.Action{Who: s, Target: s, Reason: s}}.Clean()
		size := 0
		for _, a := range append([]string{c.Path, c.Process.Name, c.Network.Host, c.Network.Path, c.Network.Reason, c.Action.Who, c.Action.Target, c.Action.Reason}, c.Args...) {
			size += len(a)
			if !utf8.ValidString(a) {
				t.Errorf("%q is not UTF-8", a)
			}
		}
		if size > 3*audit.MaxPath+3*audit.MaxWord+2*audit.MaxWhy+audit.MaxArgs {
			t.Errorf("%d bytes", size)
		}
		if again := c.Clean(); !reflect.DeepEqual(c, again) {
			t.Errorf("cleaning again changed %+v to %+v", c, again)
		}
	})
}
