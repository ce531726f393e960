package microvm_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/microvmtest"
)

// templates returns the directories of complete templates, and of those being made.
func templates(t *testing.T, data string) (whole, made []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(data, "templates"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	for _, e := range entries {
		if path := filepath.Join(data, "templates", e.Name()); strings.HasSuffix(path, ".new") {
			made = append(made, path)
		} else {
			whole = append(whole, path)
		}
	}
	return whole, made
}

// template waits for a template and returns its directory.
func template(t *testing.T, data string) (dir string) {
	t.Helper()
	until(t, "the template", func() bool {
		whole, _ := templates(t, data)
		if len(whole) == 1 {
			dir = whole[0]
		}
		return dir != ""
	})
	return dir
}

// begun counts the running machines: those that booted, and those that were restored.
func begun(t *testing.T) (started, went int) {
	t.Helper()
	for _, pid := range engines(t) {
		line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil {
			t.Fatal(err)
		}
		switch args := strings.Split(string(line), "\x00"); {
		case slices.Contains(args, "-kernel"):
			started++
		case slices.Contains(args, "-incoming"):
			went++
		default:
			t.Errorf("a machine of %q", args)
		}
	}
	return started, went
}

func expectBegun(t *testing.T, when string, started, went int) {
	t.Helper()
	if s, w := begun(t); s != started || w != went {
		t.Errorf("%s: %d machines have started by themselves and %d went on from memory, want %d and %d", when, s, w, started, went)
	}
}

// holds reports whether a file contains these bytes.
func holds(t *testing.T, path, what string) bool {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Contains(data, []byte(what))
}

func TestTheFirstMachineOfAShapeGoesOnAsTheBoxThatItWasStartedFor(t *testing.T) {
	d, data := own(t, nil)
	const mark, host = "quod-erat-demonstrandum", "first-of-its-shape"
	mount := t.TempDir()
	spec := paddock.Spec{
		ID: "first-and-only", Hostname: host, Env: map[string]string{"MARK": mark},
		Mounts: []paddock.Mount{{Source: mount, Target: "/mounted-by-the-first", Write: true}},
	}
	first := create(t, d, spec)
	expectBegun(t, "the first box", 1, 0)
	const all = "echo $MARK; hostname; echo made > /mounted-by-the-first/file; cat /mounted-by-the-first/file"
	if got := says(t, first, "sh", "-c", all); got != mark+"\n"+host+"\nmade\n" {
		t.Errorf("it says %q", got)
	}
	dir := template(t, data)
	second := create(t, d, paddock.Spec{})
	expectBegun(t, "the next one, too", 1, 1)
	if got := says(t, second, "sh", "-c", "echo $MARK; hostname; ls -d /mounted*"); strings.Contains(got, mark) || strings.Contains(got, host) || strings.Contains(got, "/mounted-by") {
		t.Errorf("the next one says %q", got)
	}
	if err := second.Remove(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The template contains nothing specific to the first box, which a search would find.
	image, err := first.Snapshot(t.Context(), paddock.SnapshotOptions{Memory: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, own := range []string{mark, host, "mounted-by-the-first"} {
		if !holds(t, filepath.Join(data, string(image), "pages"), own) {
			t.Errorf("the first one's own memory has no %q: nothing is shown by that it is not in the template", own)
		}
		for _, part := range []string{"memory", "state", "stamps"} {
			if holds(t, filepath.Join(dir, part), own) {
				t.Errorf("the template's %s has %q in it", part, own)
			}
		}
	}
	says(t, first, "sh", "-c", "echo kept > /tmp/file")
	if err := errors.Join(first.Pause(t.Context()), first.Resume(t.Context())); err != nil {
		t.Fatal(err)
	}
	if got := says(t, first, "sh", "-c", "cat /tmp/file; hostname"); got != "kept\n"+host+"\n" {
		t.Errorf("after a pause it says %q", got)
	}
	spec = paddock.Spec{Root: paddock.Root{Kind: paddock.RootSnapshot, Snapshot: image}, Mounts: spec.Mounts}
	if got := says(t, create(t, d, spec), "cat", "/mounted-by-the-first/file"); got != "made\n" {
		t.Errorf("a fork of it says %q", got)
	}
}

func TestOfMachinesThatAreMadeAtOnceOneBecomesTheTemplate(t *testing.T) {
	d, data := own(t, nil)
	// A maker that gives up blocks nobody and leaves nothing.
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		_, err := d.Create(ctx, small(paddock.Spec{}))
		ended <- err
	}()
	until(t, "a machine starts", func() bool { return len(engines(t)) == 1 })
	stop()
	if err := <-ended; paddock.KindOf(err) != paddock.Canceled {
		t.Errorf("who gave up has %v", err)
	}
	until(t, "nothing is left of a template that was given up", func() bool {
		whole, made := templates(t, data)
		return len(whole)+len(made) == 0
	})
	var wg sync.WaitGroup
	boxes := make([]paddock.Sandbox, 3)
	for i := range boxes {
		wg.Go(func() {
			sb, err := d.Create(t.Context(), small(paddock.Spec{}))
			if err != nil {
				t.Error(err)
				return
			}
			boxes[i] = sb
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	started, went := begun(t)
	if started == 0 || started+went != len(boxes) {
		t.Errorf("of three at once %d have started by themselves and %d went on from memory", started, went)
	}
	for _, sb := range boxes {
		if got := says(t, sb, "echo", "hi"); got != "hi\n" {
			t.Errorf("one of them says %q", got)
		}
	}
	template(t, data)
	create(t, d, paddock.Spec{})
	expectBegun(t, "one more", started, went+1)
}

// The file size limit is less than the machine's memory.
func TestAMachineThatCannotBeSavedIsABoxAllTheSame(t *testing.T) {
	d, data := own(t, nil)
	var was syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was) })
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 128 << 20, Max: was.Max}); err != nil {
		t.Fatal(err)
	}
	first := create(t, d, paddock.Spec{})
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &was); err != nil {
		t.Fatal(err)
	}
	if got := says(t, first, "echo", "hi"); got != "hi\n" {
		t.Errorf("it says %q", got)
	}
	until(t, "nothing is left of a template that could not be written", func() bool {
		whole, made := templates(t, data)
		return len(whole)+len(made) == 0
	})
	create(t, d, paddock.Spec{}) // it tries again
	expectBegun(t, "the next one", 2, 0)
	template(t, data)
}

// The command line makes a sandbox and exits shortly after.
func TestADriverThatIsClosedHasWrittenItsTemplate(t *testing.T) {
	_, data := own(t, nil)
	o, err := microvmtest.Options()
	if err != nil {
		t.Fatal(err)
	}
	o.State, o.Data = t.TempDir(), data
	d, err := microvm.New(o)
	if err != nil {
		t.Fatal(err)
	}
	spec := small(paddock.Spec{ID: "outlives"})
	spec.Ephemeral = false
	if _, err := d.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if whole, made := templates(t, data); len(whole) != 1 || len(made) != 0 {
		t.Errorf("when the driver is closed there are %q, and %q are being made", whole, made)
	}
	if d, err = microvm.New(o); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	}()
	sb, err := d.Open(t.Context(), "outlives")
	if err != nil {
		t.Fatal(err)
	}
	// Whoever owns it then can save it.
	says(t, sb, "sh", "-c", "echo kept > /tmp/file")
	if err := errors.Join(sb.Pause(t.Context()), sb.Resume(t.Context())); err != nil {
		t.Error(err)
	} else if got := says(t, sb, "cat", "/tmp/file"); got != "kept\n" {
		t.Errorf("after a pause it says %q", got)
	}
	if err := sb.Remove(t.Context()); err != nil {
		t.Error(err)
	}
	create(t, d, paddock.Spec{})
	expectBegun(t, "one from the template", 0, 1)
}

// A box with a fraction of a processor would delay all others of its shape.
func TestABoxThatIsHeldBackStartsNoMachineForOthers(t *testing.T) {
	d, data := own(t, nil)
	sb := create(t, d, paddock.Spec{Limits: paddock.Limits{CPUs: 0.5}})
	expectBegun(t, "a box with half of a processor", 0, 1)
	template(t, data)
	if got := says(t, sb, "echo", "hi"); got != "hi\n" {
		t.Errorf("it says %q", got)
	}
}

// An ordinary user's boxes have the template from its path, and a root user's have it as a descriptor.
func TestTemplatesOfAnOrdinaryUser(t *testing.T) {
	microvmtest.Need(t)
	drivertest.SomeAsUser(t, "^(TestADriverThatIsClosedHasWrittenItsTemplate|TestTheFirstMachineOfAShapeGoesOnAsTheBoxThatItWasStartedFor)$", 2)
}
