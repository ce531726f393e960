package admission

import (
	"context"
	"fmt"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// often is the minimum time between two lists of sandboxes before a refusal.
const often = time.Second

// A Load is the load of a machine, with its maxima.
type Load struct {
	Sandboxes, MostSandboxes int
	Memory, MostMemory       int64 // sum of claims
	Waiting                  int   // callers in the queue
	Refused                  uint64
}

// Load returns the present load.
func (d *Driver) Load() Load {
	d.line.mu.Lock()
	waiting := d.line.waiting
	d.line.mu.Unlock()
	n, memory, _ := d.besides(context.Background()) // a driver without Info makes no sandboxes
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.sum(n, memory)
	l.Waiting, l.Refused = waiting, d.refused
	return l
}

func (d *Driver) besides(ctx context.Context) (n int, memory int64, err error) {
	if d.o.Besides == nil {
		return 0, 0, nil
	}
	all := d.o.Besides()
	for i := range all {
		each, err := d.asked(ctx, &all[i])
		if err != nil {
			return 0, 0, err
		}
		memory += each
	}
	return len(all), memory, nil
}

// sum returns the load. mu is held.
func (d *Driver) sum(n int, memory int64) Load {
	l := Load{
		Sandboxes: n + d.claims + len(d.held), MostSandboxes: d.o.Sandboxes,
		Memory: memory + d.claimed, MostMemory: d.memory,
	}
	for _, has := range d.held {
		l.Memory += has.memory
	}
	return l
}

// claim claims room for n sandboxes with that much memory in all, or returns why there is
// none.
func (d *Driver) claim(ctx context.Context, n int, memory int64) error {
	err := d.try(ctx, n, memory)
	if err == nil {
		return nil
	}
	d.mu.Lock()
	stale := !d.looking && time.Since(d.looked) >= often && memory <= d.memory // else no sandbox's end would make room
	d.looking = d.looking || stale
	d.mu.Unlock()
	if stale {
		if lookErr := d.look(ctx); lookErr != nil {
			return lookErr
		}
		err = d.try(ctx, n, memory)
	}
	if err != nil {
		return d.count(err)
	}
	return nil
}

func (d *Driver) try(ctx context.Context, n int, memory int64) error {
	ready, promised, err := d.besides(ctx)
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.sum(ready, promised)
	if n > 0 && l.Sandboxes+n > l.MostSandboxes {
		return fmt.Errorf("the machine is full: %d of %d sandboxes exist; remove some, or allow more: %w", l.Sandboxes, l.MostSandboxes, paddock.Exhausted)
	}
	if memory > l.MostMemory-l.Memory {
		return fmt.Errorf("the machine is full: %s of memory are promised, of at most %s, and %s more are requested; lower the memory limit (and the disk limit, where files are memory beside it), remove sandboxes, or allow more to be promised: %w",
			size(l.Memory), size(l.MostMemory), size(memory), paddock.Exhausted)
	}
	d.claims += n
	d.claimed += memory
	return nil
}

// lookTime bounds a look.
const lookTime = 30 * time.Second

// look lists the driver's sandboxes. Only one call is in progress at a time: d.looking is set. It goes
// on if its caller gives up, because others rely on it.
func (d *Driver) look(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime)
	defer cancel()
	defer func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.looking, d.looked = false, time.Now()
	}()
	d.mu.Lock()
	before := make(map[paddock.ID]bool, len(d.held))
	for id := range d.held {
		before[id] = true
	}
	d.mu.Unlock()
	all, err := d.inner.List(ctx)
	if err != nil {
		return fmt.Errorf("count sandboxes: %w", err)
	}
	has := make([]holding, len(all))
	for i, st := range all {
		has[i] = d.holds(st)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.claims > 0 { // a listed sandbox may be one of these and would count twice
		for _, st := range all {
			delete(before, st.ID)
		}
	} else {
		for i, st := range all {
			delete(before, st.ID)
			d.held[st.ID] = has[i]
		}
	}
	for id := range before { // existed before, and not any more
		delete(d.held, id)
	}
	return nil
}

// left returns an error if the machine has too little memory or disk left.
func (d *Driver) left() error {
	if err := d.memoryLeft(); err != nil {
		return err
	}
	if d.o.Dir == "" {
		return nil
	}
	free, err := d.o.Machine.Disk(d.o.Dir)
	if err != nil {
		return fmt.Errorf("check the disk of %s: %w", d.o.Dir, err)
	}
	if free < d.o.DiskReserve {
		return fmt.Errorf("the machine is full: %s are left on the disk of %s, and %s are reserved; remove sandboxes, snapshots or files: %w", size(free), d.o.Dir, size(d.o.DiskReserve), paddock.Exhausted)
	}
	return nil
}

func (d *Driver) memoryLeft() error {
	if d.o.Reserve == blind {
		return nil
	}
	_, available, err := d.o.Machine.Memory()
	if err != nil {
		return fmt.Errorf("check the machine's memory: %w", err)
	}
	if available < d.o.Reserve {
		return fmt.Errorf("the machine is full: %s of memory are left, and %s are reserved; remove sandboxes, or end other programs: %w", size(available), size(d.o.Reserve), paddock.Exhausted)
	}
	return nil
}

// size formats a number of bytes.
func size(n int64) string {
	for _, u := range []struct {
		unit int64
		name string
	}{{1 << 40, "TiB"}, {1 << 30, "GiB"}, {1 << 20, "MiB"}} {
		if n >= u.unit {
			return fmt.Sprintf("%.1f %s", float64(n)/float64(u.unit), u.name)
		}
	}
	return fmt.Sprintf("%d bytes", n)
}
