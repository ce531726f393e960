package container

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/container/inner"
	"github.com/paddock-sandbox/paddock/internal/egress/way"
	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// remoteOwner is a keeper.
type remoteOwner struct {
	dir    string
	driver *Driver

	// made is when the sandbox was made that is meant: another one may have its
	// name by now, and be somebody else's. Zero is any.
	made time.Time
}

// other tells whether a sandbox that was made then is not the one that is meant.
func (r remoteOwner) other(made time.Time) bool { return !r.made.IsZero() && !r.made.Equal(made) }

// ask sends one request and waits for the answer. Where there is no keeper the
// error is Unavailable; where there is no sandbox, NotFound.
func (r remoteOwner) ask(ctx context.Context, q request, file **os.File) (*response, error) {
	d, err := os.Open(r.dir)
	if err != nil {
		return nil, fmt.Errorf("%w", paddock.NotFound)
	}
	defer d.Close()
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: socketIn(d), Net: "unixpacket"})
	if err != nil {
		return nil, fmt.Errorf("the sandbox's keeper does not answer: %w", paddock.Unavailable)
	}
	ch, err := kernel.ChannelOf(c)
	if err != nil {
		return nil, err
	}
	defer func() { _ = ch.Close() }()
	defer ch.Until(ctx)()
	if t, ok := ctx.Deadline(); ok {
		q.Wait = max(time.Until(t), time.Millisecond)
	}
	q.Made = r.made
	data, err := json.Marshal(q)
	if err != nil {
		return nil, err
	}
	if err := ch.Send(data); err != nil {
		return nil, fmt.Errorf("the sandbox's keeper does not answer: %w", paddock.Unavailable)
	}
	data, files, err := ch.Receive()
	if e := ctx.Err(); e != nil {
		return nil, fmt.Errorf("%w: %w", e, kindOf(e))
	}
	if err != nil {
		return nil, fmt.Errorf("the sandbox's keeper does not answer: %w", paddock.Unavailable)
	}
	for _, f := range files {
		if file == nil || *file != nil {
			f.Close()
		} else {
			*file = f
		}
	}
	var got response
	if err := json.Unmarshal(data, &got); err != nil {
		return nil, fmt.Errorf("the keeper's answer: %w", err)
	}
	if got.Error != "" {
		return nil, got.err()
	}
	return &got, nil
}

// read gives what was remembered of a sandbox whose keeper is gone.
func (r remoteOwner) read() (about, error) {
	var a about
	data, err := os.ReadFile(filepath.Join(r.dir, aboutName))
	if errors.Is(err, fs.ErrNotExist) {
		if _, err := os.Lstat(r.dir); err != nil || r.other(time.Time{}) {
			return a, fmt.Errorf("%w", paddock.NotFound)
		}
		a.Dead = "it was never finished: its keeper ended while making it"
		return a, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &a)
	}
	if err != nil {
		return a, fmt.Errorf("read what is remembered: %w", err)
	}
	if r.other(a.Created) {
		return about{}, fmt.Errorf("%w", paddock.NotFound)
	}
	if a.Dead == "" && a.Saved == "" {
		a.Dead = "its keeper was killed, and the sandbox with it"
	}
	return a, nil
}

func (r remoteOwner) connect(ctx context.Context) (net.Conn, error) {
	var f *os.File
	if _, err := r.ask(ctx, request{Op: "connect"}, &f); err != nil {
		return nil, err
	}
	if f == nil {
		return nil, fmt.Errorf("the keeper sent no connection: %w", paddock.Internal)
	}
	defer f.Close()
	return net.FileConn(f)
}

func (r remoteOwner) measure(ctx context.Context) (measure, error) {
	return r.look(ctx, request{Op: "measure"})
}

func (r remoteOwner) glance(ctx context.Context) (measure, error) {
	return r.look(ctx, request{Op: "measure", Glance: true})
}

func (r remoteOwner) look(ctx context.Context, q request) (measure, error) {
	got, err := r.ask(ctx, q, nil)
	switch {
	case err == nil && got.Measure != nil:
		return *got.Measure, nil
	case err == nil:
		return measure{}, fmt.Errorf("the keeper sent no measure: %w", paddock.Internal)
	case !errors.Is(err, paddock.Unavailable):
		return measure{}, err
	}
	a, err := r.read()
	if err != nil {
		return measure{}, err
	}
	if a.Saved != "" {
		return measure{State: paddock.Paused, Limits: a.Limits, Usage: paddock.Usage{Wall: time.Since(a.Created), CPU: -1, Memory: 0, MemoryPeak: -1}, Traffic: a.Traffic}, nil
	}
	return measure{
		State: paddock.Dead, Reason: a.Dead, Limits: a.Limits, Kills: a.Kills, Peak: a.Peak,
		Usage: paddock.Usage{CPU: -1, Memory: 0, MemoryPeak: -1}, Traffic: a.Traffic,
	}, nil
}

func (r remoteOwner) update(ctx context.Context, u paddock.Update) error {
	_, err := r.ask(ctx, request{Op: "update", Update: &u}, nil)
	return err
}

func (r remoteOwner) pause(ctx context.Context) error {
	_, err := r.ask(ctx, request{Op: "pause"}, nil)
	if errors.Is(err, paddock.Unavailable) {
		if a, e := r.read(); e == nil && a.Saved != "" {
			return nil // it is already
		}
	}
	return err
}

func (r remoteOwner) resume(ctx context.Context) error {
	_, err := r.ask(ctx, request{Op: "resume"}, nil)
	if !errors.Is(err, paddock.Unavailable) {
		return err
	}
	a, e := r.read()
	if e != nil {
		return e
	}
	if a.Saved == "" {
		return err
	}
	return r.revive(ctx)
}

func (r remoteOwner) inspect(ctx context.Context) (inner.Inspection, error) {
	got, err := r.ask(ctx, request{Op: "inspect"}, nil)
	if err != nil {
		return inner.Inspection{}, err
	}
	if got.Inspect == nil {
		return inner.Inspection{}, fmt.Errorf("the keeper sent nothing: %w", paddock.Internal)
	}
	return *got.Inspect, nil
}

func (r remoteOwner) egress(ctx context.Context) (way.State, error) {
	got, err := r.ask(ctx, request{Op: "egress"}, nil)
	if err != nil {
		return way.State{}, err
	}
	if got.Egress == nil {
		return way.State{}, fmt.Errorf("the keeper sent nothing: %w", paddock.Internal)
	}
	return *got.Egress, nil
}

func (r remoteOwner) snapshot(ctx context.Context, o paddock.SnapshotOptions) (paddock.SnapshotID, error) {
	got, err := r.ask(ctx, request{Op: "snapshot", Save: &o}, nil)
	if err != nil {
		return "", err
	}
	return got.Saved, nil
}

// revive gives a sandbox that was saved a keeper again, and a box.
func (r remoteOwner) revive(ctx context.Context) error {
	lock, err := kernel.LockDir(ctx, r.dir)
	if err != nil {
		return fmt.Errorf("resume: %w: %w", err, kindOf(err))
	}
	defer lock.Close()
	for { // the keeper that has paused it may not have ended yet
		got, err := r.ask(ctx, request{Op: "measure"}, nil)
		switch {
		case errors.Is(err, paddock.Unavailable):
		case err != nil:
			return err
		case got.Measure != nil && got.Measure.State == paddock.Ready:
			return nil // somebody else was faster
		default:
			select {
			case <-time.After(5 * time.Millisecond):
				continue
			case <-ctx.Done():
				return fmt.Errorf("resume: the keeper that paused it does not end: %w", kindOf(ctx.Err()))
			}
		}
		break
	}
	a, err := r.read()
	if err != nil {
		return err
	}
	saved, err := r.image(a)
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	d := r.driver
	exe, err := d.exe()
	if err != nil {
		return err
	}
	agent, err := d.agent()
	if err != nil {
		return err
	}
	parts, err := saved.open(d.kernel, agent, &d.sums)
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	defer closeAll(parts)
	if err := os.Remove(filepath.Join(r.dir, socketName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("resume: %w", err)
	}
	o := saved.about.Order
	o.ID, o.Dir, o.Data, o.Places, o.About = paddock.ID(filepath.Base(r.dir)), r.dir, d.data, []string{exe.Name(), agent.Name()}, a
	if t, ok := ctx.Deadline(); ok {
		o.Deadline = t
	}
	o.Locked = true
	supplies, err := d.resupply(ctx, &o)
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	defer closeAll(supplies)
	programs := []*os.File{exe}
	if o.Gateway != nil {
		program, err := d.gateway()
		if err != nil {
			return err
		}
		programs = append(programs, program)
	}
	programs = append(append(programs, agent), supplies...)
	if _, err := d.employ(ctx, o, slices.Concat(programs, parts, []*os.File{lock})...); err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	return saved.remove()
}

// image finds what a sandbox was saved to, among the driver's own.
func (r remoteOwner) image(a about) (*checkpoint, error) {
	if filepath.Dir(a.Saved) != filepath.Clean(r.driver.data) {
		return nil, fmt.Errorf("what was saved is not in %s: %w", r.driver.data, paddock.Conflict)
	}
	return readCheckpoint(a.Saved)
}

func (r remoteOwner) remove(ctx context.Context) error {
	_, err := r.ask(ctx, request{Op: "remove"}, nil)
	if !errors.Is(err, paddock.Unavailable) {
		return err
	}
	// No keeper any more, and the box died with it: what is left is a control
	// group and the directory. Or somebody is about to resume it.
	lock, err := kernel.LockDir(ctx, r.dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w", paddock.NotFound)
		}
		return fmt.Errorf("remove: %w: %w", err, kindOf(err))
	}
	defer lock.Close()
	if _, err := r.ask(ctx, request{Op: "remove"}, nil); !errors.Is(err, paddock.Unavailable) {
		return err
	}
	a, err := r.read()
	if err != nil {
		return err
	}
	if a.Saved != "" && filepath.Dir(a.Saved) == filepath.Clean(r.driver.data) {
		if err := (&checkpoint{dir: a.Saved}).remove(); err != nil {
			return err
		}
	}
	if len(a.Groups) > 0 {
		g, err := r.driver.host().Open(filepath.Base(r.dir), a.Groups...)
		switch {
		case errors.Is(err, paddock.NotFound):
		case err != nil:
			return err
		default:
			if err := g.Remove(ctx); err != nil {
				return err
			}
		}
	}
	return forgetDir(r.dir)
}
