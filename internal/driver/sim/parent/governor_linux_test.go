package parent

import (
	"context"
	"errors"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// burners are commands that compute without end in a function of a library, which
// reaches no checkpoint.
func burners() map[string]string {
	return map[string]string{
		"sqlite3": `sqlite3 :memory: "select instr(hex(zeroblob(10000000)), hex(zeroblob(5000000)) || '1')"`,
		"node":    `node -e '[new Proxy([], {get: (t, k) => k === "length" ? 2 ** 53 - 1 : t[k]})].flat()'`,
	}
}

func TestAnAllowanceIsTheLimitInTheLongRun(t *testing.T) {
	for _, cpus := range []float64{leastCPUs, 0.25, 1, 1.5, 8} {
		for _, greed := range []float64{0.1, 1, 3, 64} { // processors that it takes while it may
			now, a := time.Unix(0, 0), allowance{cpus: cpus, at: time.Unix(0, 0)}
			a.left = a.most()
			var used, stood time.Duration
			const long = time.Hour
			for now.Before(time.Unix(0, 0).Add(long)) {
				a.look(now, used)
				if rest := a.rest(); rest > 0 {
					now, stood = now.Add(rest), stood+rest
					continue
				}
				wait := a.next()
				now, used = now.Add(wait), used+time.Duration(greed*float64(wait))
			}
			limit := time.Duration(cpus * float64(long))
			if most := limit + a.most() + time.Duration(greed*float64(mostLook)); used > most {
				t.Errorf("%v processors: one that takes %v had %v in an hour", cpus, greed, used)
			}
			if greed <= cpus && stood > 0 {
				t.Errorf("%v processors: one that takes %v stood still for %v", cpus, greed, stood)
			}
			if greed > cpus && used < limit*9/10 {
				t.Errorf("%v processors: one that takes %v had only %v in an hour", cpus, greed, used)
			}
		}
	}
}

// background starts a command that goes on after it has ended.
func background(t *testing.T, sb paddock.Sandbox, script string) {
	t.Helper()
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"bash", "-c", script + " >/dev/null 2>&1 &"}})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(t.Context()); err != nil || exit.Code != 0 {
		t.Fatalf("%+v, %v", exit, err)
	}
}

func limited(t *testing.T, l paddock.Limits) *sandbox {
	t.Helper()
	made, err := driver(t).Create(t.Context(), paddock.Spec{Limits: l})
	if err != nil {
		t.Fatal(err)
	}
	sb, ok := made.(*sandbox)
	if !ok {
		t.Fatalf("a sandbox is a %T", made)
	}
	return sb
}

// until waits for what takes long on a machine that is busy.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for begun := time.Now(); !ok(); time.Sleep(50 * time.Millisecond) {
		if time.Since(begun) > 5*time.Minute {
			t.Fatalf("never: %s", what)
		}
	}
}

func use(t *testing.T, sb *sandbox) paddock.Usage {
	t.Helper()
	st, err := sb.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return st.Usage
}

// A busy machine only gives less time.
func TestTheLimitOfProcessorsHoldsForWhatReachesNoCheckpoint(t *testing.T) {
	for name, script := range burners() {
		t.Run(name, func(t *testing.T) {
			sb := limited(t, paddock.Limits{})
			for range 3 {
				background(t, sb, script)
			}
			before := use(t, sb)
			until(t, "all compute", func() bool { return use(t, sb).CPU > before.CPU+3*time.Second })
			for cpus, most := range map[float64]float64{0.05: 0.15, 0.1: 0.2} {
				if err := sb.Update(t.Context(), paddock.Update{Limits: &paddock.Limits{CPUs: cpus}}); err != nil {
					t.Fatal(err)
				}
				before := use(t, sb)
				var had, of time.Duration
				until(t, "it computes for a while", func() bool {
					now := use(t, sb)
					had, of = now.CPU-before.CPU, now.Wall-before.Wall
					return had > 100*time.Millisecond && of > 5*time.Second
				})
				if had.Seconds() > most*of.Seconds() {
					t.Errorf("it had %v in %v of %v processors", had, of, cpus)
				}
				if host := sb.cpu.used(); host < before.CPU+had {
					t.Errorf("the host counts %v, and the status says %v", host, before.CPU+had)
				}
			}
		})
	}
}

func TestAPauseStopsWhatReachesNoCheckpoint(t *testing.T) {
	sb := limited(t, paddock.Limits{})
	background(t, sb, burners()["sqlite3"])
	goesOn := func() {
		t.Helper()
		before := use(t, sb).CPU
		until(t, "it computes", func() bool { return use(t, sb).CPU > before+100*time.Millisecond })
	}
	goesOn()
	for range 2 {
		if err := sb.Pause(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	still := func() (had time.Duration) {
		until(t, "it stands still", func() bool {
			before := had
			had = use(t, sb).CPU
			return had == before
		})
		return had
	}
	had := still()
	st, err := sb.Status(t.Context())
	if err != nil || st.State != paddock.Paused || st.Reason != "" || st.Usage.PIDs < 1 || st.Usage.Memory < 0 {
		t.Errorf("%+v, %v", st, err)
	}
	if p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"true"}}); !errors.Is(err, paddock.Conflict) {
		t.Errorf("start: %v, %v", p, err)
	}
	if _, err := sb.Processes(t.Context()); !errors.Is(err, paddock.Conflict) {
		t.Errorf("processes: %v", err)
	}
	if _, err := sb.FS().Stat(t.Context(), "/"); !errors.Is(err, paddock.Conflict) {
		t.Errorf("stat: %v", err)
	}
	if err := sb.Update(t.Context(), paddock.Update{Limits: &paddock.Limits{CPUs: 2}}); !errors.Is(err, paddock.Conflict) {
		t.Errorf("update: %v", err)
	}
	if now := use(t, sb).CPU; now != had {
		t.Errorf("it had %v, and %v after calls", had, now)
	}
	if id, err := sb.Snapshot(t.Context(), paddock.SnapshotOptions{}); err != nil || id == "" {
		t.Errorf("snapshot: %q, %v", id, err)
	}
	still()
	if err := sb.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	goesOn()
	if err := sb.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := sb.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func TestACommandThatDoesNotEndEndsItsSandboxWithAReason(t *testing.T) {
	for name, script := range burners() {
		t.Run(name, func(t *testing.T) {
			sb := limited(t, paddock.Limits{})
			background(t, sb, "timeout -s KILL 1 "+script)
			var st paddock.Status
			until(t, "it is dead", func() bool {
				var err error
				if st, err = sb.Status(t.Context()); err != nil {
					t.Fatal(err)
				}
				return st.State == paddock.Dead
			})
			if !strings.Contains(st.Reason, "did not stop computing: \""+name+"\"") {
				t.Errorf("its reason: %q", st.Reason)
			}
			if st.Usage.CPU < 10*time.Second || st.Usage.CPU > st.Usage.Wall+time.Second {
				t.Errorf("it had %v in %v", st.Usage.CPU, st.Usage.Wall)
			}
			if err := sb.Remove(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// What each row of a query takes can be ended, so its sandbox lives on.
func TestAQueryWithoutEndIsEndedAndItsSandboxLivesOn(t *testing.T) {
	sb := limited(t, paddock.Limits{})
	const query = `sqlite3 :memory: 'SELECT 1 UNION ALL SELECT count(*) FROM (WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT x FROM c)'`
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"bash", "-c", "timeout -s KILL 1 " + query + "; echo $?"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if exit, err := p.Wait(ctx); err != nil || exit.Code != 0 {
		t.Fatalf("%+v, %v", exit, err)
	}
	if st, err := sb.Status(t.Context()); err != nil || st.State != paddock.Ready || st.Usage.PIDs != 0 {
		t.Errorf("%+v, %v", st, err)
	}
}

// A child that was taken over may find a way to take back the signal that stops it. Here the test does that for it.
func TestAChildThatGoesOnWhileItIsStoppedIsEnded(t *testing.T) {
	for name, stop := range map[string]func(sb *sandbox) error{
		"for its limit": func(sb *sandbox) error {
			return sb.Update(t.Context(), paddock.Update{Limits: &paddock.Limits{CPUs: leastCPUs}})
		},
		"while it is paused": func(sb *sandbox) error { return sb.Pause(t.Context()) },
	} {
		t.Run(name, func(t *testing.T) {
			sb := limited(t, paddock.Limits{})
			background(t, sb, burners()["sqlite3"])
			if err := stop(sb); err != nil {
				t.Fatal(err)
			}
			until(t, "it is ended", func() bool {
				for range 1000 {
					_ = sb.process.Signal(syscall.SIGCONT) // it may have ended
				}
				select {
				case <-sb.ended:
					return true
				default:
					return false
				}
			})
			st, err := sb.Status(t.Context())
			if err != nil || st.State != paddock.Dead || !strings.Contains(st.Reason, errGoesOn.Error()) {
				t.Errorf("%+v, %v", st, err)
			}
		})
	}
}
