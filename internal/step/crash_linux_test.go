package step

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// crashing has what a child needs that kills itself.
const crashing = "PADDOCK_TEST_STEP_CRASH"

// A child of TestAKilledRecorder… does what a seed says, and kills itself between two calls.
func TestMain(m *testing.M) {
	if text := os.Getenv(crashing); text != "" {
		crash(strings.Split(text, "\n"))
	}
	os.Exit(m.Run())
}

func crash(args []string) {
	seed, _ := strconv.ParseUint(args[2], 10, 64)
	left, _ := strconv.Atoi(args[3])
	tick := func() {
		if left--; left < 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	fail := func(err error) {
		if err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
	}
	j, err := Open(args[0], Options{})
	fail(err)
	r, err := j.Begin(context.Background(), About{Kind: "exec", Roots: []Root{{Path: Text(args[1])}}})
	fail(err)
	r.pass = tick
	b := &box{r: r, dirs: []string{args[1]}, die: tick}
	x := rand.New(rand.NewPCG(seed, 11))
	for range 25 {
		var errno syscall.Errno
		if _, err := b.random(x); err != nil && !errors.As(err, &errno) {
			fail(err)
		}
	}
	_, err = r.End(context.Background(), Outcome{})
	fail(err)
	os.Exit(0)
}

func TestAKilledRecorderLosesNothingThatItAcknowledged(t *testing.T) {
	for seed := range 12 {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			dir := workspace(t)
			for at := 1 + seed%3; ; at += 7 {
				grow(t, rand.New(rand.NewPCG(uint64(seed), uint64(at))), dir)
				before := picture(t, dir)
				home := t.TempDir() + "/journal"
				child := exec.Command(os.Args[0], "-test.run=^$")
				child.Env = append(os.Environ(), crashing+"="+strings.Join([]string{home, dir, fmt.Sprint(seed), fmt.Sprint(at)}, "\n"))
				out, err := child.CombinedOutput()
				var exit *exec.ExitError
				if err != nil && (!errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL) {
					t.Fatalf("%v\n%s", err, out)
				}
				j, openErr := Open(home, Options{})
				must(t, openErr)
				after := picture(t, dir)
				recovered, recErr := j.Recover(t.Context())
				must(t, recErr)
				list, listErr := j.List(t.Context(), Filter{})
				must(t, listErr)
				if len(list) > 1 || err == nil && (len(list) != 1 || len(recovered) != 0 || list[0].Incomplete) {
					t.Fatalf("at %d: recovered %v of %v", at, recovered, list)
				}
				if len(list) == 0 {
					same(t, "no record", before, after)
				} else {
					res := undoing(t, j, list[0].Number)
					if d := differ2(before, picture(t, dir)); d != "" || len(res.Conflicts) > 0 {
						rec, _ := j.Read(t.Context(), list[0].Number)
						t.Fatalf("killed at %d: left\n%s\nconflicts %+v\nchanges %s", at, d, res.Conflicts, describe(rec))
					}
				}
				if drafts, err := j.store.Drafts(); err != nil || len(drafts) > 0 {
					t.Errorf("drafts %v, %v", drafts, err)
				}
				if again, err := j.Recover(t.Context()); err != nil || len(again) > 0 {
					t.Errorf("again %v, %v", again, err)
				}
				must(t, j.Close())
				if err == nil {
					return
				}
			}
		})
	}
}

func TestALivingRecorderIsNotRecovered(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{})
	b := &box{r: begin(t, j, dir), dirs: []string{dir}}
	must(t, b.write(0, "a", "new", 0))
	if list, err := j.Recover(t.Context()); err != nil || len(list) > 0 {
		t.Fatal(list, err)
	}
	if rec := end(t, b.r); rec.Incomplete || len(rec.Changes) != 1 {
		t.Errorf("%+v", rec)
	}
	if _, err := b.r.End(t.Context(), Outcome{}); !errors.Is(err, paddock.Conflict) {
		t.Error(err)
	}
	if err := b.r.Write(0, "a"); !errors.Is(err, paddock.Conflict) {
		t.Error(err)
	}
}

// abandonHalfway leaves a recorder as a kill would, in this process.
func leaveDead(t *testing.T, r *Recorder) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = true
	must(t, errors.Join(r.draft.Leave(), r.close(false)))
}

func TestWhatFollowsADamagedLineOfTheLogIsNotTrusted(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{})
	must(t, os.WriteFile(dir+"/a", []byte("old a"), 0o644))
	must(t, os.WriteFile(dir+"/b", []byte("old b"), 0o644))
	b := &box{r: begin(t, j, dir), dirs: []string{dir}}
	must(t, b.write(0, "a", "new", os.O_TRUNC))
	size := b.r.log.size
	must(t, b.write(0, "b", "new", os.O_TRUNC))
	f, err := j.root.OpenFile(b.r.path, os.O_RDWR, 0)
	must(t, err)
	_, err = f.WriteAt([]byte("x"), size+20)
	must(t, err)
	must(t, f.Close())
	leaveDead(t, b.r)
	list, err := j.Recover(t.Context())
	must(t, err)
	if len(list) != 1 || !list[0].Incomplete || len(list[0].Changes) != 1 {
		t.Fatalf("%+v", list)
	}
	undoing(t, j, list[0].Number)
	same(t, "undo", map[string]string{"0:a": `-rw-r--r-- "old a"`, "0:b": `-rw-r--r-- "new"`}, picture(t, dir))
}

func TestARootThatIsGoneOrExchangedIsNotCompared(t *testing.T) {
	dir, j := workspace(t), journal(t, Options{})
	must(t, os.WriteFile(dir+"/a", []byte("old"), 0o644))
	b := &box{r: begin(t, j, dir), dirs: []string{dir}}
	must(t, b.remove(0, "a"))
	leaveDead(t, b.r)
	must(t, os.Rename(dir, dir+".away"))
	must(t, os.Mkdir(dir, 0o755))
	must(t, os.WriteFile(dir+"/a", []byte("another"), 0o644))
	list, err := j.Recover(t.Context())
	must(t, err)
	if len(list) != 1 || !list[0].Incomplete {
		t.Fatalf("%+v", list)
	}
	if _, err := j.Undo(t.Context(), Request{Steps: []int64{1}}); !errors.Is(err, paddock.Conflict) {
		t.Error(err)
	}
	same(t, "the other directory", map[string]string{"0:a": `-rw-r--r-- "another"`}, picture(t, dir))
	must(t, os.RemoveAll(dir))
	must(t, os.Rename(dir+".away", dir))
	if res := undoing(t, j, 1); len(res.Restored) != 1 {
		t.Errorf("%+v", res)
	}
	same(t, "back", map[string]string{"0:a": `-rw-r--r-- "old"`}, picture(t, dir))
}

func TestALogThatIsFullIsSaidAndGuessesNothing(t *testing.T) {
	for _, killed := range []bool{false, true} {
		dir := workspace(t)
		j := journal(t, Options{Log: 1500})
		files := map[string]string{}
		for i := range 20 {
			files[fmt.Sprint("f", i)] = fmt.Sprint("old", i)
		}
		plant(t, dir, files)
		b := &box{r: begin(t, j, dir), dirs: []string{dir}}
		must(t, b.write(0, "new", "by the step", 0))
		for i := range 20 {
			must(t, b.write(0, fmt.Sprint("f", i), "by the step", os.O_TRUNC))
		}
		must(t, b.move(0, "f19", 0, "new", Replace))
		if killed {
			leaveDead(t, b.r)
			list, err := j.Recover(t.Context())
			if err != nil || len(list) != 1 {
				t.Fatal(list, err)
			}
		} else {
			end(t, b.r)
		}
		rec, err := j.Read(t.Context(), 1)
		must(t, err)
		if !rec.Incomplete || killed && len(rec.Left) == 0 {
			t.Errorf("%+v", rec)
		}
		undoing(t, j, 1)
		if text, err := os.ReadFile(dir + "/f0"); err != nil || string(text) != "old0" {
			t.Errorf("%q %v", text, err)
		}
		if !killed { // the recorder knew all that it could not write down
			files := map[string]string{}
			for i := range 20 {
				files[fmt.Sprint("0:f", i)] = fmt.Sprintf("-rw-r--r-- %q", fmt.Sprint("old", i))
			}
			same(t, "undo", files, picture(t, dir))
		} else if text, err := os.ReadFile(dir + "/new"); err != nil || string(text) != "by the step" {
			t.Errorf("new: %q %v", text, err)
		}
	}
	dir, j := workspace(t), journal(t, Options{Log: 1000})
	r, err := j.Begin(t.Context(), About{Roots: []Root{{Path: Text(dir)}}, Strict: true})
	must(t, err)
	for err == nil {
		err = r.Create(0, "a"+strings.Repeat("x", 100))
	}
	if !errors.Is(err, paddock.Exhausted) {
		t.Error(err)
	}
	end(t, r)
}
