package serve

import (
	"errors"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/step/steptest"
)

func TestAServerHasRulesJudgeSandboxesThatNameNoMonitor(t *testing.T) {
	for _, row := range []struct {
		flag   string
		spec   paddock.Spec
		judged bool
		fails  bool
	}{
		{flag: ""}, {flag: "off"},
		{flag: "off", spec: paddock.Spec{Monitor: &paddock.Monitor{}}, judged: true},
		{flag: "rules", judged: true},
		{flag: "rules", spec: paddock.Spec{Monitor: &paddock.Monitor{Task: "x"}}, judged: true},
		{flag: "./judge", fails: true},
	} {
		t.Run(row.flag, func(t *testing.T) {
			c := &accounts{flags: &serveFlags{account: accountFlags{monitor: row.flag}}}
			if err := c.flags.account.checkMonitor(); errors.Is(err, paddock.Unsupported) != row.fails {
				t.Errorf("the flag: %v", err)
			}
			if row.fails {
				return
			}
			inner, err := sim.New(sim.Options{})
			if err != nil {
				t.Fatal(err)
			}
			asking, _ := steptest.Asking(inner)
			d, err := c.monitorLayer(t.Context(), asking)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = d.Close() })
			sb, err := d.Create(t.Context(), row.spec)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := paddock.MonitorQuestions(t.Context(), sb, false); (err == nil) != row.judged {
				t.Errorf("its questions: %v", err)
			}
		})
	}
}
