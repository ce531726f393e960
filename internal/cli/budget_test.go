package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli/fake"
)

func TestASandboxIsStoppedWhenItsBudgetIsUsedUp(t *testing.T) {
	for name, row := range map[string]struct {
		budget string
		use    func(*paddock.Status, int64) // at a look
		want   string
	}{
		"processors": {"cpu=2s", func(st *paddock.Status, look int64) { st.Usage.CPU = time.Duration(look) * 1500 * time.Millisecond }, "its budget of processor time, 2s, is used up"},
		"both directions of the network": {"cpu=1h,network=1M", func(st *paddock.Status, look int64) {
			st.Traffic = &paddock.Traffic{In: look * 400_000, Out: look * 400_000}
		}, "its budget of network traffic, 1 MiB, is used up"},
		"what is not measured any more": {"cpu=1h", func(st *paddock.Status, look int64) {
			if look > 0 {
				st.Usage.CPU = -1
			}
		}, "what it uses of its budget cannot be measured any more"},
	} {
		t.Run(name, func(t *testing.T) {
			var looks atomic.Int64
			f := &fake.Fake{Measure: func(st *paddock.Status) { row.use(st, looks.Add(1)-1) }}
			v := invoke(t.TempDir(), nil, []Tier{AsTier(f, paddock.Jail)}, "run", "--allow", "a.example", "--budget", row.budget, "--json", "--", "sleep", "1000000")
			code := v.Run(t.Context())
			if code != 124 || !strings.Contains(v.Stderr.String(), "paddock: the sandbox was stopped: "+row.want+"\nhint: more: --budget") || f.Removed == 0 {
				t.Errorf("exit status %d, %q", code, v.Stderr.String())
			}
			var answer struct {
				Status int
				Error  struct{ Kind, Message string }
				Exit   *struct{}
			}
			if err := json.Unmarshal([]byte(v.Stdout.String()), &answer); err != nil || answer.Status != 124 || answer.Error.Kind != "exhausted" || !strings.Contains(answer.Error.Message, row.want) || answer.Exit != nil {
				t.Errorf("%s, %v", v.Stdout.String(), err)
			}
		})
	}
}

func TestACommandWithinItsBudgetIsLeftAlone(t *testing.T) {
	f := &fake.Fake{}
	v := invoke(t.TempDir(), nil, []Tier{AsTier(f, paddock.Jail)}, "run", "--budget", "cpu=1h", "--", "sh", "-c", "exit 3")
	if code := v.Run(t.Context()); code != 3 || v.Stderr.String() != "" {
		t.Errorf("exit status %d, %q", code, v.Stderr.String())
	}
}

func TestABudgetThatCannotBeKeptIsRefused(t *testing.T) {
	blind := &fake.Fake{Measure: func(st *paddock.Status) { st.Usage.CPU = -1 }}
	for _, row := range []struct {
		args []string
		want string
	}{
		{[]string{"--budget", "cpu"}, "there is no value"},
		{[]string{"--budget", "cpu=0s"}, "cannot be its value"},
		{[]string{"--budget", "cpu=fast"}, "cannot be its value"},
		{[]string{"--budget", "network=0"}, "cannot be its value"},
		{[]string{"--budget", "cost=1"}, "--budget cost: there are no prices"},
		{[]string{"--budget", "cost=0.00"}, "cannot be its value"},
		{[]string{"--budget", "cost=1e3"}, "cannot be its value"},
		{[]string{"--budget", "cpu=+1s"}, "cannot be its value"},
		{[]string{"--budget", "time=1s"}, "budgets are cpu, network and cost"},
		{[]string{"--budget", "cpu=1s,cpu=2s"}, "is there twice"},
		{[]string{"--budget", "cpu=1s"}, "--budget cpu: nothing measures it in this sandbox"},
		{[]string{"--budget", "network=1M"}, "this sandbox has no network"},
		{[]string{"--budget", "network=1M", "--allow", "a.example"}, "--budget network: nothing measures it"},
	} {
		v := invoke(t.TempDir(), nil, []Tier{AsTier(blind, paddock.Jail)}, append(append([]string{"run"}, row.args...), "--", "touch", "ran")...)
		if code := v.Run(t.Context()); code != 125 || !strings.Contains(v.Stderr.String(), row.want) || !strings.Contains(v.Stderr.String(), "hint: ") {
			t.Errorf("%q: exit status %d, %q", row.args, code, v.Stderr.String())
		}
	}
	if blind.Created != blind.Removed {
		t.Errorf("%d sandboxes were made, and %d removed", blind.Created, blind.Removed)
	}
}

const priced = `version: 1
budget:
  cost: 1
  prices: {cpu_second: 0.5, memory_gib_second: 0}
`

func TestACostIsByThePricesOfThePolicyFile(t *testing.T) {
	for name, row := range map[string]struct {
		args []string
		want string
	}{
		"of the file":        {nil, "its budget of cost, 1, is used up"},
		"of the command":     {[]string{"--budget", "cost=2.25"}, "its budget of cost, 2.25, is used up"},
		"what is less stops": {[]string{"--budget", "cpu=1500ms"}, "its budget of processor time, 1.5s, is used up"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.WriteFile(filepath.Join(dir, "p.yaml"), []byte(priced), 0o600); err != nil {
				t.Fatal(err)
			}
			var looks atomic.Int64
			f := &fake.Fake{Measure: func(st *paddock.Status) { st.Usage.CPU = time.Duration(looks.Add(1)-1) * 1500 * time.Millisecond }}
			v := invoke(dir, nil, []Tier{AsTier(f, paddock.Jail)}, append(append([]string{"run", "--policy", filepath.Join(dir, "p.yaml")}, row.args...), "--", "sleep", "1000000")...)
			if code := v.Run(t.Context()); code != 124 || !strings.Contains(v.Stderr.String(), row.want) {
				t.Errorf("exit status %d, %q", code, v.Stderr.String())
			}
		})
	}
}
