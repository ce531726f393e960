package step

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// onDisk sums what a journal has on the disk.
func onDisk(t testing.TB, j *Journal) (n int64) {
	t.Helper()
	must(t, filepath.WalkDir(j.root.Name(), func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		i, err := d.Info()
		if err == nil {
			n += i.Size()
		}
		return err
	}))
	return n
}

// noise returns contents that nothing else has.
func noise(n int, seed int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "%d.%d\n", seed, i*7919)
	}
	return b.String()[:n]
}

func TestStepsThatGoOnKeepWithinTheSizeTogether(t *testing.T) {
	const size = 4 << 20
	j, dir := journal(t, Options{Size: size}), workspace(t)
	var open []*Recorder
	kept := 0
	for i := range 20 {
		must(t, os.WriteFile(filepath.Join(dir, "f"), []byte(noise(1<<20, i)), 0o600))
		r := begin(t, j, dir)
		open = append(open, r)
		must(t, r.Write(0, "f"))
		if r.bytes > 0 && len(r.left) == 0 {
			kept++
		}
	}
	if kept == 0 {
		t.Fatal("nothing was kept")
	}
	if n := onDisk(t, j); n > size+size/8 { // that of the logs
		t.Errorf("%d bytes on the disk of %d", n, size)
	}
	for _, r := range open {
		end(t, r)
	}
	if left, err := j.reserved(); err != nil || left != 0 {
		t.Errorf("%d bytes are reserved of no step: %v", left, err)
	}
	rest, err := filepath.Glob(filepath.Join(j.root.Name(), dirLogs, "*"))
	must(t, err)
	if len(rest) > 0 {
		t.Errorf("left: %v", rest)
	}
}

func TestLogsOfStepsThatGoOnKeepWithinTheSize(t *testing.T) {
	const size = 8 << 20
	j, dir := journal(t, Options{Size: size}), workspace(t)
	long := strings.Repeat("x", 200)
	for range 6 {
		r := begin(t, j, dir)
		t.Cleanup(func() { _ = r.Abandon() })
		for i := range 12_000 {
			_ = r.Create(0, fmt.Sprint(long, i)) // or the record is incomplete
		}
	}
	if n := onDisk(t, j); n > size+6*logFree {
		t.Errorf("%d bytes on the disk of %d", n, size)
	}
}

func TestRoomOfADeadStepComesBack(t *testing.T) {
	j, dir := journal(t, Options{Size: 4 << 20}), workspace(t)
	must(t, os.WriteFile(filepath.Join(dir, "f"), []byte(noise(3<<20, 1)), 0o600))
	r := begin(t, j, dir)
	must(t, r.Write(0, "f"))
	if n, err := j.reserved(); err != nil || n < 3<<20 {
		t.Fatal(n, err)
	}
	leaveDead(t, r)
	if n, err := j.reserved(); err != nil || n < 3<<20 {
		t.Error("the draft of a dead step is not counted:", n, err)
	}
	if _, err := j.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n, err := j.reserved(); err != nil || n != 0 {
		t.Error(n, err)
	}
	if n := j.count(fileUsage); n < 3<<20 {
		t.Error("what it kept is not counted:", n)
	}
}

func TestOneSandboxDoesNotPushOutTheStepsOfAnother(t *testing.T) {
	j, dir := journal(t, Options{Size: 4 << 20}), workspace(t)
	step := func(life string, bytes, seed int) int64 {
		must(t, os.WriteFile(filepath.Join(dir, "f"), []byte(noise(bytes, seed)), 0o600))
		r, err := j.Begin(t.Context(), About{Life: life, Roots: []Root{{Path: Text(dir)}}})
		must(t, err)
		must(t, r.Write(0, "f"))
		must(t, os.WriteFile(filepath.Join(dir, "f"), nil, 0o600))
		return end(t, r).Number
	}
	quiet := step("quiet", 200<<10, 1)
	var last int64
	for i := range 12 {
		last = step("loud", 1<<20, 2+i)
	}
	list, err := j.List(t.Context(), Filter{})
	must(t, err)
	var numbers []int64
	for i := range list {
		numbers = append(numbers, list[i].Number)
	}
	if !slices.Contains(numbers, quiet) || !slices.Contains(numbers, last) || len(numbers) > 5 {
		t.Errorf("the steps %v are left", numbers)
	}
}

func TestOpenStepsOfOneSandboxLeaveRoomForOthers(t *testing.T) {
	j, dir := journal(t, Options{Size: 8 << 20, Step: 4 << 20, File: 4 << 20}), workspace(t)
	begun := func(life string, strict bool) *Recorder {
		r, err := j.Begin(t.Context(), About{Life: life, Strict: strict, Roots: []Root{{Path: Text(dir)}}})
		must(t, err)
		t.Cleanup(func() { _ = r.Abandon() })
		return r
	}
	for i := range 4 {
		name := fmt.Sprint("b", i)
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(noise(3<<20, i)), 0o600))
		must(t, begun("hostile", false).Remove(0, name))
	}
	must(t, os.WriteFile(filepath.Join(dir, "victim"), []byte(noise(1<<20, 9)), 0o600))
	r := begun("other", true)
	if err := r.Remove(0, "victim"); err != nil {
		t.Error(err)
	}
	if n, err := r.ours(); err != nil || n < 1<<20 || n > 4<<20 {
		t.Errorf("%d bytes are the other's: %v", n, err)
	}
	if r.lives[1] != "hostile" {
		t.Errorf("the lives of open steps are %v", r.lives)
	}
}
