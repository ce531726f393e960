//go:build linux

package drivertest_test

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/drivertest"
)

// Defects that a bare driver may have on purpose.
const (
	claimsTooMuch    = "claims a capability that it does not have"
	claimsTooLittle  = "does what Info does not claim"
	answersAnyTier   = "answers for any tier"
	inventsBirth     = "invents a status at creation"
	dropsControls    = "drops controls silently"
	dropsAudit       = "takes what it does not record"
	leaksEnvironment = "leaks the host's environment"
	mixesStreams     = "mixes the streams"
	removesOnce      = "fails the second removal"
	leavesFiles      = "leaves files behind"
	skipsClaimed     = "skips what it claims"
	skipsNothing     = "skips what is no promise"
	skipsUnsaid      = "skips without a reason"
)

// brokenVariable names the environment variable that tells a child process of this test
// which defect its driver has.
const brokenVariable = "PADDOCK_DRIVERTEST_BROKEN"

// A suite that cannot fail proves nothing. Each of these drivers breaks one promise, and
// the suite, run in a process of its own, must report which.
func TestTheSuiteSeesABrokenDriver(t *testing.T) {
	if broken := os.Getenv(brokenVariable); broken != "" {
		h := bareHarness(broken)
		switch broken {
		case skipsClaimed:
			h.Skip = map[string]string{"Ctrl-C interrupts the command": "too hard"}
		case skipsNothing:
			h.Skip = map[string]string{"the moon is made of cheese": "it is not"}
		case skipsUnsaid:
			h.Skip = map[string]string{"standard output and standard error are kept apart": " "}
		}
		drivertest.Run(t, h)
		return
	}
	for _, row := range []struct {
		broken, run, says string
	}{
		{claimsTooMuch, "together/pausing and resuming twice is fine", "unsupported"},
		{claimsTooLittle, "together/what Info does not claim is refused", "terminal: no error"},
		{answersAnyTier, "together/Info answers for the driver's own tier", "no error"},
		{inventsBirth, "together/Born is the status at creation", "Born is"},
		{dropsControls, "together/a control that is absent is refused", "a sandbox was made"},
		{dropsAudit, "together/what Info does not claim is refused", "audit: no error"},
		{leaksEnvironment, "together/no variable of the host's enters", "is visible"},
		{leaksEnvironment, "together/the environment is the tier's short list", "is on no list"},
		{mixesStreams, "together/standard output and standard error are kept apart", "stdout"},
		{removesOnce, "together/removing twice", "remove again"},
		{leavesFiles, "alone/Remove leaves nothing, whatever ran", "left behind"},
		{skipsClaimed, "nothing more", "Info claims what it rests on"},
		{skipsNothing, "nothing more", "which is no promise"},
		{skipsUnsaid, "nothing more", "without a reason"},
		{"", "together/standard output and standard error are kept apart", ""},
	} {
		t.Run(row.broken+", "+row.run, func(t *testing.T) {
			t.Parallel()
			parts := strings.Split(strings.ReplaceAll(row.run, " ", "_"), "/")
			for i, p := range parts {
				parts[i] = regexp.QuoteMeta(p)
			}
			cmd := exec.Command(os.Args[0], "-test.run", "^"+t.Name()[:strings.IndexByte(t.Name(), '/')]+"$/"+strings.Join(parts, "/"))
			cmd.Env = append(os.Environ(), brokenVariable+"="+row.broken)
			if row.broken == "" {
				cmd.Env = append(cmd.Env, brokenVariable+"=nothing")
			}
			out, err := cmd.CombinedOutput()
			if failed := err != nil; failed != (row.says != "") || !strings.Contains(string(out), row.says) {
				t.Errorf("failed %v, want it to say %q:\n%s", failed, row.says, out)
			}
		})
	}
}
