package shell_test

import (
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/shell"
)

func TestAScriptFromElsewhereHasItsName(t *testing.T) {
	t.Parallel()
	text := `f() { echo "$0,${BASH_SOURCE[*]},${FUNCNAME[*]},${BASH_LINENO[*]},$*"; }` + "\nf \"$@\"\nnonsense\n"
	for name, args := range map[string][]string{
		"text": {shell.ScriptName, "job.sh", "-c", text, "job.sh", "a", "b"},
		"file": {shell.ScriptName, "job.sh", "/dev/stdin", "a", "b"},
	} {
		got := run(t, text, budget.Limits{}, args...)
		if got.out != "job.sh,job.sh job.sh,f main,2 0,a b\n" || got.err != "job.sh: line 3: nonsense: command not found\n" || got.status != 127 {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := run(t, "", budget.Limits{}, shell.ScriptName); got.status != 2 {
		t.Errorf("without a name: %+v", got)
	}
}
