package hostwatch

import (
	"fmt"
	"reflect"
	"sync"

	"gvisor.dev/gvisor/pkg/context"
	"gvisor.dev/gvisor/pkg/log"
	"gvisor.dev/gvisor/pkg/sentry/kernel"
	"gvisor.dev/gvisor/pkg/sentry/seccheck"
	pb "gvisor.dev/gvisor/pkg/sentry/seccheck/points/points_go_proto"
	"gvisor.dev/gvisor/pkg/sentry/vfs"
)

// mountsOf is the member of the sink's configuration with the paths of mounts, for a kernel that goes on from
// saved memory.
const mountsOf = "mounts"

// Config returns the sink's configuration in a trace session. A kernel that goes on from saved memory has watches
// already, which the sink has to find; mounts are the paths of its mounts. Another one needs none.
func Config(mounts []string) map[string]any {
	if len(mounts) == 0 {
		return nil
	}
	return map[string]any{mountsOf: mounts}
}

// mounts reads the configuration, which has been JSON on its way.
func mounts(config map[string]any) (list []string) {
	all, _ := config[mountsOf].([]any)
	for _, m := range all {
		if path, ok := m.(string); ok {
			list = append(list, path)
		}
	}
	return list
}

// TaskExit implements seccheck.Sink. It is called when any thread ends, and one does before a box is ready. So the
// watches are there when a box has resumed.
func (s *sink) TaskExit(ctx context.Context, _ seccheck.FieldSet, _ *pb.TaskExit) error {
	if len(s.mounts) == 0 {
		return nil
	}
	if k := kernel.KernelFromContext(ctx); k != nil {
		s.restored.Do(func() { s.find(k) })
	}
	return nil
}

// find has the host watch what commands have watched since before the memory was saved.
func (s *sink) find(k *kernel.Kernel) {
	defer func() { // a change in gVisor's internals may panic here
		if r := recover(); r != nil {
			log.Warningf("find the watches of commands: %v", r)
		}
	}()
	ctx := k.SupervisorContext()
	found := map[*vfs.Dentry]bool{}
	looked := map[*vfs.Inotify]bool{}
	for _, task := range k.TaskSet().Root.Tasks() {
		var table *kernel.FDTable
		task.WithMuLocked(func(t *kernel.Task) {
			if table = t.FDTable(); table != nil && !table.TryIncRef() {
				table = nil // the thread is ending
			}
		})
		if table == nil {
			continue
		}
		for _, number := range table.GetFDs(ctx) {
			file, _ := table.Get(number)
			if file == nil {
				continue
			}
			if i, ok := file.Impl().(*vfs.Inotify); ok && !looked[i] {
				looked[i] = true
				for _, d := range targets(i) {
					found[d] = true
				}
			}
			file.DecRef(ctx)
		}
		table.DecRef(ctx)
	}
	var placed []*entry
	for d := range found {
		s.place(k, d, func(mount, path string, dir bool) {
			if e := s.watch(k, d, mount, path, dir); e != nil {
				placed = append(placed, e)
			}
		})
	}
	s.lost(k, placed) // since the memory was saved, nobody has told what the host changes
}

// targets returns what an instance watches, which gVisor does not export.
func targets(i *vfs.Inotify) (list []*vfs.Dentry) {
	field := func(of reflect.Value, name string) reflect.Value {
		f := of.FieldByName(name)
		return reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem()
	}
	v := reflect.ValueOf(i).Elem()
	mu, ok := field(v, "mu").Addr().Interface().(sync.Locker)
	if !ok {
		return nil
	}
	mu.Lock()
	defer mu.Unlock()
	for it := field(v, "watches").MapRange(); it.Next(); {
		if d, ok := field(it.Value().Elem(), "target").Interface().(*vfs.Dentry); ok {
			list = append(list, d)
		}
	}
	return list
}

// place finds the path of a file in a mount, and calls found with a reference on the file. Nobody may have one: a
// watch alone keeps a file in gVisor's memory.
func (s *sink) place(k *kernel.Kernel, d *vfs.Dentry, found func(mount, path string, dir bool)) {
	if d.IsDead() || fmt.Sprintf("%T", d.Impl()) != "*gofer.dentry" {
		return
	}
	done := false
	for _, mount := range s.mounts {
		e := &entry{mount: mount, dentry: d}
		s.hold(k, e, func(path string, vd vfs.VirtualDentry) {
			done = true
			found(mount, path, isDir(k, vd))
		})
		if done {
			return
		}
	}
}
