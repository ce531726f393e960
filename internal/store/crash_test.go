package store_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/store/storetest"
)

// roleVariable makes this test binary play a part: it writes, and says what was
// acknowledged.
const roleVariable = "PADDOCK_STORE_TEST_ROLE"

func TestMain(m *testing.M) {
	role, place, _ := strings.Cut(os.Getenv(roleVariable), " ")
	switch role {
	case "":
		os.Exit(m.Run())
	case "write":
		os.Exit(told(write(place)))
	case "fill":
		os.Exit(told(fill(place)))
	}
	os.Exit(told(fmt.Errorf("no part is called %q", role)))
}

func told(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// write keeps sandboxes, forgets every third, and tells each that is done. It goes
// on until it is killed.
func write(place string) error {
	ctx := context.Background()
	s, err := store.Open(ctx, place)
	if err != nil {
		return err
	}
	for i := 0; ; i++ {
		b := box(paddock.ID(fmt.Sprintf("b%d-%d", os.Getpid(), i)), "acme")
		if err := s.AddSandbox(ctx, b, func(have *store.Total) error {
			have.Rate = time.Unix(have.Sandboxes+1, 0)
			return nil
		}); err != nil {
			return err
		}
		fmt.Println("+", b.ID)
		if err := s.ReadySandbox(ctx, b.Token, b.ID, b.Tier); err != nil {
			return err
		}
		fmt.Println("=", b.ID)
		if i%3 == 2 {
			if err := s.ForgetSandbox(ctx, b.Token); err != nil {
				return err
			}
			fmt.Println("-", b.ID)
		}
	}
}

// part starts this test binary in a part.
func part(t *testing.T, role, place string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), self)
	cmd.Env = append(os.Environ(), roleVariable+"="+role+" "+place)
	cmd.Stderr = os.Stderr
	return cmd
}

func TestAKillAtAnyMomentLosesNothingThatWasAcknowledged(t *testing.T) {
	kills := 25
	if testing.Short() {
		kills = 5
	}
	storetest.Each(t, func(t *testing.T, e storetest.Engine) {
		place := e.Place(t)
		s := storetest.Open(t, place)
		must(t, s.AddTenant(t.Context(), store.Tenant{ID: "acme"}))
		random := rand.New(rand.NewPCG(7, 11))
		promised := make(map[paddock.ID]string)
		for range kills {
			writeAndKill(t, place, 1+random.IntN(40), time.Duration(random.IntN(3000))*time.Microsecond, promised)
			checkPromised(t, storetest.Open(t, place), promised)
		}
		if len(promised) < kills {
			t.Errorf("only %d sandboxes were written", len(promised))
		}
	})
}

// writeAndKill kills a writer some time after so many acknowledgements, and notes
// all that it made.
func writeAndKill(t *testing.T, place string, after int, later time.Duration, promised map[paddock.ID]string) {
	t.Helper()
	cmd := part(t, "write", place)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	lines := bufio.NewScanner(out)
	for n := 0; lines.Scan(); n++ {
		what, id, _ := strings.Cut(lines.Text(), " ")
		promised[paddock.ID(id)] = what
		if n == after {
			pid := cmd.Process
			time.AfterFunc(later, func() { _ = pid.Kill() }) // in the middle of whatever it does then
		}
	}
	if err := cmd.Wait(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Fatalf("the writer ended by itself: %v", err)
	}
}

// checkPromised compares what is there with what was acknowledged. Of each sandbox
// the step after the last that was told may be done too.
func checkPromised(t *testing.T, s *store.Store, promised map[paddock.ID]string) {
	t.Helper()
	list := settled(t, s)
	states := make(map[paddock.ID]store.State, len(list))
	for _, b := range list {
		states[b.ID] = b.State
	}
	for id, what := range promised {
		state, there := states[id]
		ok := what == "+" && there || what == "=" && (state == store.Ready || !there && lastStep(id)) || what == "-" && !there
		if !ok {
			t.Errorf("%s was acknowledged as %s, and is %q", id, what, state)
		}
	}
	have, err := s.Total(t.Context(), "acme")
	if err != nil || have.Sandboxes != int64(len(list)) || have.Memory != int64(len(list))<<30 {
		t.Errorf("%d sandboxes, counted are %+v, %v", len(list), have, err)
	}
}

// settled gives the sandboxes when the database has done what the writer asked for
// last: a server of databases may do so after its client was killed.
func settled(t *testing.T, s *store.Store) []store.Sandbox {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for before := ""; ; {
		list, err := s.Sandboxes(ctx, "acme", "")
		must(t, err)
		have, err := s.Total(ctx, "acme") // waits for the writer's transaction
		must(t, err)
		now := fmt.Sprint(have, list)
		if now == before {
			return list
		}
		before = now
	}
}

// lastStep tells whether the writer forgets a sandbox after it is ready.
func lastStep(id paddock.ID) bool {
	var pid, i int
	_, err := fmt.Sscanf(string(id), "b%d-%d", &pid, &i)
	return err == nil && i%3 == 2
}
