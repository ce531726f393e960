package expand_test

import (
	"testing"

	"github.com/paddock-sandbox/paddock/internal/sim/budget"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// FuzzWords expands whatever is written, which must end without a panic that
// is not the kernel's own.
func FuzzWords(f *testing.F) {
	for _, s := range scripts()[:40] {
		f.Add(s)
	}
	f.Add(`x='a[$x]'; a=(1); c $((x)) ${!x} ${x@P}`)
	f.Add(`x='$x'; c ${x@P}; y='${y@P}'; c "${y@P}"`)
	f.Add(`c {1..999999999}`)
	f.Add(`x=aaaaaaaaaa; x=$x$x$x$x; x=$x$x$x$x; x=${x//a/$x}; x=${x//a/$x}; x=${x//a/$x}`)
	f.Fuzz(func(t *testing.T, script string) {
		k := kernel.New(kernel.Options{FS: vfs.New(vfs.Options{}), Limits: budget.Limits{
			Steps: 200_000, Heap: 8 << 20, String: 1 << 20, Array: 10_000, Brace: 10_000,
		}})
		run := k.NewRun()
		defer run.End()
		task, err := run.NewTask(vfs.View{FS: k.FS, Dir: vfs.Root}, []string{"bash"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		task.Do(func(task *kernel.Task) int {
			newMiniOn(task).run(script)
			return 0
		})
	})
}
