package box

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/cgroup"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// remoteOwner is a sandbox's keeper in another process.
type remoteOwner struct {
	dir    string
	driver *Driver
	group  func() (*cgroup.Group, error) // of the box

	// made is the creation time of the meant sandbox. Another sandbox of another user may
	// have its name by now. Zero matches any.
	made time.Time
}

// other reports whether a sandbox with that creation time is not the meant one.
func (r remoteOwner) other(made time.Time) bool { return !r.made.IsZero() && !r.made.Equal(made) }

// ask sends one request and waits for the answer. Without a keeper the error is
// Unavailable, without a sandbox NotFound.
func (r remoteOwner) ask(ctx context.Context, q request) (*response, error) {
	got, files, err := r.call(ctx, q)
	CloseAll(files)
	return got, err
}

// call is ask, and also returns the files that come with the answer.
func (r remoteOwner) call(ctx context.Context, q request) (_ *response, files []*os.File, err error) {
	ch, err := r.dial()
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = ch.Close() }()
	defer ch.Until(ctx)()
	return r.exchange(ctx, ch, q)
}

// dial connects to the keeper.
func (r remoteOwner) dial() (*sys.Channel, error) {
	d, err := os.Open(r.dir)
	if err != nil {
		return nil, fmt.Errorf("%w", paddock.NotFound)
	}
	defer d.Close()
	// By a short name, because the length of socket paths is limited.
	c, err := net.DialUnix("unixpacket", nil, &net.UnixAddr{Name: filepath.Join(fdPath(int(d.Fd())), socketName), Net: "unixpacket"})
	if err != nil {
		return nil, errDeaf()
	}
	return sys.ChannelOf(c)
}

// errDeaf returns the error of a request that nobody answers.
func errDeaf() error {
	return fmt.Errorf("the sandbox's keeper does not answer: %w", paddock.Unavailable)
}

// exchange sends a request and waits for the answer as long as ch lets it.
func (r remoteOwner) exchange(ctx context.Context, ch *sys.Channel, q request) (*response, []*os.File, error) {
	if err := r.send(ctx, ch, q); err != nil {
		return nil, nil, err
	}
	data, files, err := ch.Receive()
	if e := ctx.Err(); e != nil {
		return nil, files, fmt.Errorf("%w: %w", e, EndKind(e))
	}
	if err != nil {
		return nil, files, errDeaf()
	}
	got, err := answered(data)
	return got, files, err
}

// send sends a request. ctx bounds what the keeper does for it.
func (r remoteOwner) send(ctx context.Context, ch *sys.Channel, q request) error {
	if t, ok := ctx.Deadline(); ok {
		q.Wait = max(time.Until(t), time.Millisecond)
	}
	q.Made = r.made
	data, err := json.Marshal(q)
	if err != nil {
		return err
	}
	err = ch.Send(data)
	if e := ctx.Err(); e != nil && err != nil {
		return fmt.Errorf("%w: %w", e, EndKind(e))
	}
	if err != nil {
		return errDeaf()
	}
	return nil
}

// answered reads an answer.
func answered(data []byte) (*response, error) {
	var got response
	if err := json.Unmarshal(data, &got); err != nil {
		return nil, fmt.Errorf("the keeper's answer: %w", err)
	}
	if got.Error != "" {
		return nil, got.err()
	}
	return &got, nil
}

// read returns the stored description of a sandbox whose keeper is gone.
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
	if a.Saved == "" && r.whole(a.Saving) { // the keeper was killed just before it noted that
		a.Saved, a.Saving = a.Saving, ""
	}
	if a.Dead == "" && a.Saved == "" {
		a.Dead = "its keeper was killed, and the sandbox with it"
	}
	return a, nil
}

// holds reports whether dir is a directory of saved boxes of this driver's.
func (r remoteOwner) holds(dir string) bool {
	return dir != "" && r.driver != nil && r.driver.tier.Snapshots != nil && filepath.Dir(dir) == filepath.Clean(r.driver.site.Data)
}

// whole reports whether dir has a box that was saved completely. Such a box has stopped, and cannot
// continue without a keeper.
func (r remoteOwner) whole(dir string) bool {
	if !r.holds(dir) {
		return false
	}
	_, whole := r.driver.tier.Snapshots.Paused(dir)
	return whole
}

func (r remoteOwner) connect(ctx context.Context) (net.Conn, *statusBoard, error) {
	_, way, err := r.call(ctx, request{Op: "connect"})
	if err != nil {
		CloseAll(way)
		return nil, nil, err
	}
	return connected(way)
}

// connected takes the files of a keeper's answer: the connection to the agent, and the
// board. A keeper of an earlier release sends no board.
func connected(way []*os.File) (_ net.Conn, b *statusBoard, err error) {
	defer CloseAll(way)
	if len(way) == 0 {
		return nil, nil, fmt.Errorf("the keeper sent no connection: %w", paddock.Internal)
	}
	if len(way) > 1 {
		if b, err = readBoard(way[1]); err != nil {
			return nil, nil, fmt.Errorf("what the keeper shows: %w", err)
		}
	}
	conn, err := net.FileConn(way[0])
	if err != nil {
		b.close()
		return nil, nil, err
	}
	return conn, b, nil
}

func (r remoteOwner) Standing(ctx context.Context) (Standing, error) {
	got, err := r.ask(ctx, request{Op: "stand"})
	switch {
	case errors.Is(err, paddock.Unsupported): // a keeper of an earlier release
		m, err := r.Measure(ctx)
		return m.Standing, err
	case err == nil && got.Standing != nil:
		return *got.Standing, nil
	case err == nil:
		return Standing{}, fmt.Errorf("the keeper does not tell how it stands: %w", paddock.Internal)
	}
	m, err := r.remembered(err)
	return m.Standing, err
}

// kills reads the control group's count itself, and asks the keeper if that fails.
func (r remoteOwner) kills(ctx context.Context) (int64, error) {
	if g, err := r.group(); err == nil {
		if n, err := g.Kills(); err == nil && n >= 0 { // otherwise this process cannot see the count
			return n, nil
		}
	}
	m, err := r.Measure(ctx)
	return m.Kills, err
}

func (r remoteOwner) Measure(ctx context.Context) (Measure, error) {
	got, err := r.ask(ctx, request{Op: "measure"})
	switch {
	case err == nil && got.Measure != nil:
		got.Measure.about = got.About
		return *got.Measure, nil
	case err == nil:
		return Measure{}, fmt.Errorf("the keeper sent no measure: %w", paddock.Internal)
	}
	return r.remembered(err)
}

// remembered returns the stored measure if err says that the keeper is gone.
func (r remoteOwner) remembered(err error) (Measure, error) {
	if !errors.Is(err, paddock.Unavailable) {
		return Measure{}, err
	}
	a, err := r.read()
	if err != nil {
		return Measure{}, err
	}
	if a.Saved != "" {
		return Measure{Standing: Standing{State: paddock.Paused}, Limits: a.Limits, Usage: paddock.Usage{Wall: time.Since(a.Created), CPU: -1, Memory: 0, MemoryPeak: -1}, Traffic: a.Traffic, Monitor: a.Monitor.tell()}, nil
	}
	return Measure{
		Standing: Standing{paddock.Dead, a.Dead}, Limits: a.Limits, Kills: a.Kills, Peak: a.Peak, Refused: a.Refused,
		Usage: paddock.Usage{CPU: -1, Memory: 0, MemoryPeak: -1}, Traffic: a.Traffic, Monitor: a.Monitor.tell(),
	}, nil
}

// outcomeTime bounds the wait for what became of a change whose caller has left. The keeper gives it up, unless the
// inside of the sandbox is about to answer.
const outcomeTime = 30 * time.Second

// update also waits for the outcome if ctx ends: the keeper then gives the change up, or has made it. After an error of
// the kind Unavailable it is not known whether the change was or will be made.
func (r remoteOwner) update(ctx context.Context, u paddock.Update) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("%w: %w", err, EndKind(err))
	}
	ch, err := r.dial()
	if errors.Is(err, paddock.Unavailable) {
		if a, e := r.read(); e == nil && a.Saved != "" {
			return fmt.Errorf("the sandbox is paused: %w", paddock.Conflict)
		}
	}
	if err != nil {
		return err
	}
	defer func() { _ = ch.Close() }()
	if err := r.send(ctx, ch, request{Op: "update", Update: &u}); err != nil {
		return err
	}
	defer context.AfterFunc(ctx, func() { ch.HangUp(outcomeTime) })()
	data, files, err := ch.Receive()
	CloseAll(files)
	left := ctx.Err()
	switch {
	case err != nil && left != nil:
		return fmt.Errorf("%w: what became of the change is not known: %w", left, errDeaf())
	case err != nil:
		return errDeaf()
	}
	if _, err = answered(data); err == nil || left == nil {
		return err
	}
	return fmt.Errorf("%w: %w: %w", left, EndKind(left), err)
}

func (r remoteOwner) pause(ctx context.Context) error {
	_, err := r.ask(ctx, request{Op: "pause"})
	if errors.Is(err, paddock.Unavailable) {
		if a, e := r.read(); e == nil && a.Saved != "" {
			return nil // it is already
		}
	}
	return err
}

func (r remoteOwner) resume(ctx context.Context) error {
	_, err := r.ask(ctx, request{Op: "resume"})
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

func (r remoteOwner) Inspect(ctx context.Context) (boxinit.Inspection, error) {
	got, err := r.ask(ctx, request{Op: "inspect"})
	if err != nil {
		return boxinit.Inspection{}, err
	}
	if got.Inspect == nil {
		return boxinit.Inspection{}, fmt.Errorf("the keeper sent nothing: %w", paddock.Internal)
	}
	return *got.Inspect, nil
}

func (r remoteOwner) egress(ctx context.Context) (gatewayclient.State, error) {
	got, err := r.ask(ctx, request{Op: "egress"})
	if err != nil {
		return gatewayclient.State{}, err
	}
	if got.Egress == nil {
		return gatewayclient.State{}, fmt.Errorf("the keeper sent nothing: %w", paddock.Internal)
	}
	return *got.Egress, nil
}

func (r remoteOwner) spec(ctx context.Context) (paddock.Spec, error) {
	got, err := r.ask(ctx, request{Op: "spec"})
	if err != nil {
		return paddock.Spec{}, err
	}
	if got.Spec == nil {
		return paddock.Spec{}, fmt.Errorf("the keeper sent nothing: %w", paddock.Internal)
	}
	return *got.Spec, nil
}

// questions implements boxOwner. A sandbox whose owner is gone asks nothing.
func (r remoteOwner) questions(ctx context.Context, wait bool) ([]paddock.MonitorQuestion, error) {
	got, err := r.ask(ctx, request{Op: "questions", Await: wait})
	if errors.Is(err, paddock.Unavailable) {
		switch a, e := r.read(); {
		case e != nil:
			return nil, e
		case a.Monitor == nil:
			return nil, errUnmonitored()
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return got.Questions, nil
}

// reply implements boxOwner.
func (r remoteOwner) reply(ctx context.Context, question string, allow bool) error {
	_, err := r.ask(ctx, request{Op: "reply", Question: question, Allow: allow})
	if !errors.Is(err, paddock.Unavailable) {
		return err
	}
	switch a, e := r.read(); {
	case e != nil:
		return e
	case a.Monitor == nil:
		return errUnmonitored()
	}
	return fmt.Errorf("question %.40q does not wait any more: nothing runs in the sandbox: %w", question, paddock.NotFound)
}

func (r remoteOwner) snapshot(ctx context.Context, o paddock.SnapshotOptions) (paddock.SnapshotID, error) {
	ch, err := r.dial()
	if err != nil {
		return "", err
	}
	defer func() { _ = ch.Close() }()
	stop := ch.Until(ctx)
	defer stop()
	got, files, err := r.exchange(ctx, ch, request{Op: "snapshot", Save: &o, Keeps: true})
	CloseAll(files)
	switch {
	case err != nil:
		return "", err
	case !stop(): // without a word, the keeper removes it
		return "", fmt.Errorf("%w: %w", ctx.Err(), EndKind(ctx.Err()))
	}
	return got.Saved, r.keep(ch)
}

// keep takes a snapshot of which the keeper has told on ch. From a keeper that is killed meanwhile, or that is of an
// earlier release, it stays.
func (r remoteOwner) keep(ch *sys.Channel) error {
	late, cancel := context.WithTimeout(context.Background(), outcomeTime)
	defer cancel()
	defer ch.Until(late)()
	if err := r.send(late, ch, request{Op: "keep"}); err != nil {
		return nil // as above
	}
	data, files, err := ch.Receive()
	CloseAll(files)
	if err != nil {
		return nil // as above
	}
	if _, err := answered(data); err != nil && !errors.Is(err, paddock.Unsupported) {
		return err
	}
	return nil
}

// revive starts a keeper and a box for a saved sandbox.
func (r remoteOwner) revive(ctx context.Context) error {
	lock, err := sys.LockDir(ctx, r.dir)
	if err != nil {
		return fmt.Errorf("resume: %w: %w", err, EndKind(err))
	}
	defer lock.Close()
	for { // the keeper that paused it may not have ended yet
		got, err := r.ask(ctx, request{Op: "measure"})
		switch {
		case errors.Is(err, paddock.Unavailable):
		case err != nil:
			return err
		case got.Measure != nil && got.Measure.State == paddock.Ready:
			return nil // another process was faster
		default:
			select {
			case <-time.After(5 * time.Millisecond):
				continue
			case <-ctx.Done():
				return fmt.Errorf("resume: the keeper that paused it does not end: %w", EndKind(ctx.Err()))
			}
		}
		break
	}
	a, err := r.read()
	if err != nil {
		return err
	}
	d := r.driver
	if a.Saved == "" {
		return fmt.Errorf("resume: nothing of the sandbox was saved, and its keeper is gone; remove the sandbox: %w", paddock.Conflict)
	}
	if !r.holds(a.Saved) {
		return fmt.Errorf("resume: what was saved is in %q, not in %s; resume it with that directory, or remove the sandbox: %w", filepath.Dir(a.Saved), d.site.Data, paddock.Conflict)
	}
	// Another driver may have found it, too, and remember it in a state directory of its own.
	found, err := sys.LockDir(ctx, a.Saved)
	if err != nil {
		return fmt.Errorf("resume: what was saved in %s cannot be used: %w; if it is gone, remove the sandbox", a.Saved, err)
	}
	defer found.Close()
	re, err := d.tier.Snapshots.Reopen(ctx, a.Saved)
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	defer re.First.Close()
	defer re.Files.Close()
	if err := os.Remove(filepath.Join(r.dir, socketName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("resume: %w", err)
	}
	o := &re.Order
	o.Tier, o.Files = d.tier.Name, d.site.Files
	o.ID, o.Dir, o.Data, o.About = paddock.ID(filepath.Base(r.dir)), r.dir, d.site.Data, a
	if t, ok := ctx.Deadline(); ok {
		o.Deadline = t
	}
	needed := []executed{{FileInit, d.tier.Init}}
	if o.Gateway != nil {
		needed = append(needed, executed{fileGateway, d.gateway})
	}
	programs, opened, err := withExecuted(needed, &re.Programs)
	if err != nil {
		return err
	}
	defer CloseAll(opened)
	var files []*os.File
	o.Tables, files = tablesOf(&programs, &re.Files, &re.First)
	o.Tables.Found = true
	_, way, err := d.employ(ctx, o, append(files, lock, found)...)
	CloseAll(way) // the connection is made when needed
	if err != nil {
		return fmt.Errorf("resume: %w", err)
	}
	return re.Saved.Remove()
}

func (r remoteOwner) remove(ctx context.Context) error {
	_, err := r.ask(ctx, request{Op: "remove"})
	if !errors.Is(err, paddock.Unavailable) {
		return err
	}
	// The keeper is gone, and the box died with it. A control group and the directory are
	// left. Or another process is about to resume it.
	lock, err := sys.LockDir(ctx, r.dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w", paddock.NotFound)
		}
		return fmt.Errorf("remove: %w: %w", err, EndKind(err))
	}
	defer lock.Close()
	if _, err := r.ask(ctx, request{Op: "remove"}); !errors.Is(err, paddock.Unavailable) {
		return err
	}
	a, err := r.read()
	if err != nil {
		return err
	}
	for _, saved := range []string{a.Saved, a.Saving} {
		if !r.holds(saved) {
			continue
		}
		if err := os.RemoveAll(saved); err != nil {
			return fmt.Errorf("remove what was saved: %w", err)
		}
	}
	if len(a.Groups) > 0 {
		g, err := r.driver.site.host().Open(filepath.Base(r.dir), a.Groups...)
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
