//go:build linux

package jail

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
)

// filling makes processes until it reaches the maximum, under the highest limit that a
// process may set for itself.
const filling = `n=$(ulimit -H -u 2>/dev/null || ulimit -H -p)
ulimit -S -u $n 2>/dev/null || ulimit -S -p $n
i=0; while [ $i -lt 500 ]; do sleep 1000 & i=$((i+1)); echo $i; done`

func TestASandboxThatIsFullDoesNotLoseItsAgent(t *testing.T) {
	const limit, lower = 64, 40
	d, err := open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	info, err := d.Info(t.Context(), paddock.Jail)
	if err != nil {
		t.Fatal(err)
	}
	limits := map[string]int{"as it was made": limit}
	if info.Can(paddock.CanUpdateLimits) {
		limits["lowered"] = lower
	}
	for name, now := range limits {
		t.Run(name, func(t *testing.T) {
			sb, err := d.Create(t.Context(), paddock.Spec{Ephemeral: true, Limits: paddock.Limits{PIDs: limit}, AllowMissing: drivertest.Weak(t, open)})
			if err != nil {
				t.Fatal(err)
			}
			if now < limit {
				if err := sb.Update(t.Context(), paddock.Update{Limits: &paddock.Limits{PIDs: now}}); err != nil {
					t.Fatal(err)
				}
			}
			fill(t, sb, now)
			for range 5 {
				useAtOnce(t, sb)
			}
			if st, err := sb.Status(t.Context()); err != nil || st.State != paddock.Ready || st.Usage.PIDs > now || st.Usage.PIDs < now/2 {
				t.Errorf("%+v, %v", st, err)
			}
		})
	}
}

// fill makes as many processes as possible, and checks their number.
func fill(t *testing.T, sb paddock.Sandbox, limit int) {
	t.Helper()
	var out strings.Builder
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"sh", "-c", filling}, Output: paddock.Output{Stdout: &out, Stderr: io.Discard}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	lines := strings.Fields(out.String())
	if len(lines) == 0 {
		t.Fatal("no process was made")
	}
	if made, err := strconv.Atoi(lines[len(lines)-1]); err != nil || made > limit || made < limit/2 {
		t.Errorf("%d processes were made, the limit is %d (%v)", made, limit, err)
	}
}

// useAtOnce makes many calls in parallel.
func useAtOnce(t *testing.T, sb paddock.Sandbox) {
	t.Helper()
	var calls sync.WaitGroup
	defer calls.Wait()
	for n := range 64 {
		calls.Go(func() {
			switch n % 3 {
			case 0:
				p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"sleep", "1000"}})
				if err == nil {
					p.Release()
				} else if !errors.Is(err, paddock.Exhausted) {
					t.Errorf("start: %v", err)
				}
			case 1:
				for _, err := range sb.FS().List(t.Context(), "/usr/bin", 1) {
					if err != nil {
						t.Errorf("list: %v", err)
						break
					}
				}
			default:
				if _, err := sb.Processes(t.Context()); err != nil {
					t.Errorf("processes: %v", err)
				}
			}
		})
	}
}
