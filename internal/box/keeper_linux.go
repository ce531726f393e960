package box

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net"
	"os"
	"path/filepath"
	"runtime/debug"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/cgroup"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

const keeperArgv0 = "paddock-keeper"

// freeAfter is the delay after which a new sandbox's keeper frees the memory that it took
// to make the sandbox.
const freeAfter = time.Second

// updateTime bounds a change of a caller who sets no bound. A change takes up to twice the time of a box's init.
const updateTime = 8 * time.Minute

// Names in the state directory of a kept sandbox.
const (
	socketName = "keeper"
	aboutName  = "about.json"
)

// An Order is what a keeper gets at its start, on descriptor 3. The files of the plan come
// with it.
type Order struct {
	ID       paddock.ID            `json:"id"`
	Dir      string                `json:"dir"` // of this sandbox, in the state directory
	Tier     paddock.Tier          `json:"tier"`
	Data     string                `json:"data"`  // directory for saved boxes
	Files    string                `json:"files"` // directory of snapshots of files
	Argv0    string                `json:"argv0"` // of the runtime
	Tables   Tables                `json:"tables,omitzero"`
	Spec     *paddock.Spec         `json:"spec,omitempty"` // as asked for, including secrets; nil if it is too large
	Root     paddock.Root          `json:"root,omitzero"`
	User     string                `json:"user,omitempty"`
	Policy   paddock.Policy        `json:"policy,omitzero"`   // of the network only the mode
	Gateway  *gatewayclient.Config `json:"gateway,omitempty"` // configuration of the gateway, including secrets
	Layout   PlannedLayout         `json:"layout"`
	Limits   paddock.Limits        `json:"limits"`
	Groups   bool                  `json:"groups"`
	About    about                 `json:"about"`
	Deadline time.Time             `json:"deadline,omitzero"`
}

// A request to a keeper; each is one packet.
type request struct {
	Op       string                   `json:"op"` // connect, stand, measure, update, pause, resume, remove, inspect, snapshot, keep, egress, step, ended, spec, questions, reply, verdicts
	Save     *paddock.SnapshotOptions `json:"save,omitempty"`
	Keeps    bool                     `json:"keeps,omitempty"` // of a snapshot: without the request keep after the answer, it is removed
	Update   *paddock.Update          `json:"update,omitempty"`
	Step     *stepOrder               `json:"step,omitempty"`
	Exit     *paddock.Exit            `json:"exit,omitempty"`     // of a step that ended; nil is not known
	Wait     time.Duration            `json:"wait,omitempty"`     // how long the caller waits; 0 means removeTime, of an update updateTime
	Question string                   `json:"question,omitempty"` // of reply
	Allow    bool                     `json:"allow,omitempty"`
	Await    bool                     `json:"await,omitempty"` // of questions: wait for one
	After    int64                    `json:"after,omitempty"` // of verdicts
	Made     time.Time                `json:"made,omitzero"`   // creation time of the meant sandbox; zero matches any
}

// A response of a keeper. The answer to connect, and the first response, carry a connection
// to the agent and the file of the keeper's board. The first one also has what Status
// needs.
type response struct {
	Error    string               `json:"error,omitempty"`
	Kind     paddock.Kind         `json:"kind,omitempty"`
	Host     bool                 `json:"host,omitempty"`    // see HostFault
	Missing  *paddock.Finding     `json:"missing,omitempty"` // of a paddock.MissingError
	Standing *Standing            `json:"standing,omitempty"`
	Measure  *Measure             `json:"measure,omitempty"`
	About    *about               `json:"about,omitempty"`
	Inspect  *boxinit.Inspection  `json:"inspect,omitempty"`
	Saved    paddock.SnapshotID   `json:"saved,omitempty"`
	Egress   *gatewayclient.State `json:"egress,omitempty"`
	Spec     *paddock.Spec        `json:"spec,omitempty"`

	Questions []paddock.MonitorQuestion `json:"questions,omitempty"`

	Events []audit.Event `json:"events,omitempty"` // of verdicts
	Last   int64         `json:"last,omitempty"`   // number of the newest of them
}

// keeperMain runs the process that owns one kept sandbox.
func keeperMain(runtimes []*Runtime) {
	sys.KeepSignals()
	_ = sys.CloseFrom(4) // descriptors that the maker inherited
	maker, err := sys.NewChannel(3)
	if err != nil {
		os.Exit(1) // nobody to report to
	}
	var hearing sync.WaitGroup // for the maker; ends with the channel
	k, err := keep(maker, &hearing, runtimes)
	if err != nil {
		data, e := json.Marshal(failed(err))
		if e == nil && maker.Send(data) != nil && k != nil {
			k.forget() // the maker is gone, and would have done so
		}
	}
	_ = maker.Close() // or it was
	hearing.Wait()
	if err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// keep makes the sandbox, reports to the maker, and serves until the sandbox ends. A goroutine of
// hearing ends with the maker's channel. An error comes with the keeper if there is one already.
func keep(maker *sys.Channel, hearing *sync.WaitGroup, runtimes []*Runtime) (k *keeper, err error) {
	o, plan, locks, err := receiveOrder(maker, runtimes)
	// The maker holds the lock of the sandbox's directory, and of what it resumes, until the sandbox runs and what was
	// saved is gone. This process holds them too, because the maker may be killed before.
	defer CloseAll(locks)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if !o.Deadline.IsZero() {
		ctx, cancel = context.WithDeadline(ctx, o.Deadline)
		defer cancel()
	}
	// If the maker ends before it has its sandbox, the sandbox ends too.
	accepted := make(chan bool, 1)
	hearing.Go(func() {
		_, _, err := maker.Receive()
		accepted <- err == nil
		if err != nil {
			cancel()
		}
	})
	at, err := holdDirectory(o.Dir, locks[0]) // until the process ends
	if err != nil {
		return nil, fmt.Errorf("the directory of the sandbox: %w", err)
	}
	k = &keeper{dir: o.Dir, directory: at, about: o.About, gone: make(chan struct{})}
	listener, err := k.listen()
	if err != nil {
		return k, err
	}
	defer listener.Close()
	first, err := k.begin(ctx, o, plan)
	if k.recorded != nil {
		defer func() { _ = k.recorded() }() // an event that cannot be written has ended the box
	}
	if err == nil {
		err = k.handOver(ctx, maker, first, accepted)
		first.Close() // other users ask for another one
	}
	if err != nil {
		if k.box == nil {
			return k, err
		}
		rm, cancel := context.WithTimeout(context.Background(), removeTime)
		defer cancel()
		return k, errors.Join(err, k.box.Remove(rm))
	}
	_ = maker.Close() // it has its answer
	CloseAll(locks)
	debug.SetGCPercent(50)
	debug.SetMemoryLimit(math.MaxInt64)
	free := time.AfterFunc(freeAfter, debug.FreeOSMemory) // does not delay short-lived sandboxes
	defer free.Stop()
	k.serve(listener)
	if k.life.image() == nil { // a resume waits for the end of this process
		_ = k.life.steps.trim() // or the next one does it
	}
	return k, nil
}

// forget removes the directory of a sandbox that was not made. That of one that was to be resumed stays, because
// another process may resume it.
func (k *keeper) forget() {
	now, err := k.directory.held.Stat()
	if err != nil || k.about.Saved != "" || !k.directory.leads(k.dir, now) {
		return
	}
	_ = forgetDir(k.dir) // nobody is there to be told
}

// receiveOrder reads the order, and rebuilds the plan of the box with the files that come
// with it.
func receiveOrder(maker *sys.Channel, runtimes []*Runtime) (o *Order, p *Plan, locks []*os.File, err error) {
	data, files, err := maker.Receive()
	if err != nil || len(files) == 0 {
		return nil, nil, nil, fmt.Errorf("receive the order: %w", errors.Join(err, fmt.Errorf("%d descriptors", len(files))))
	}
	o = &Order{}
	if err := json.Unmarshal(data, o); err != nil {
		return nil, nil, nil, fmt.Errorf("read the order: %w", err)
	}
	p = &Plan{Name: string(o.ID), Spec: o.Spec, Root: o.Root, User: o.User, Policy: o.Policy, Layout: o.Layout.Layout(), Limits: o.Limits, host: cgroup.Probe(), Groups: o.Groups}
	if locks, err = o.Tables.fill(p, files); err != nil {
		return nil, nil, nil, err
	}
	if o.Gateway != nil {
		var carried paddock.Traffic
		if o.About.Traffic != nil { // it is resumed
			carried = *o.About.Traffic
		}
		p.Gateway = gatewayclient.Restore(o.Gateway, carried)
	}
	for _, r := range runtimes {
		if r.Argv0 == o.Argv0 {
			p.Runtime = r
			return o, p, locks, nil
		}
	}
	return nil, nil, locks, fmt.Errorf("this program knows no runtime %q: %w", o.Argv0, paddock.Internal)
}

// begin makes the box, and returns the first connection to its agent. If k.box is set after
// an error, the caller must remove it.
func (k *keeper) begin(ctx context.Context, o *Order, p *Plan) (first *os.File, err error) {
	if k.board, k.shown, err = newBoard(); err != nil {
		return nil, fmt.Errorf("what the keeper shows: %w", err)
	}
	if k.recorded, err = keepAudit(p, k.directory.inside(auditName), o.About.Monitor != nil); err != nil {
		return nil, err
	}
	k.life = &Life{plan: *p, tier: o.Tier, data: o.Data, files: o.Files, saving: k.saving, turn: make(chan struct{}, 1)}
	k.watchOver(o)
	if err := k.life.record(o.ID, o.About.Undo, o.About.Saved != "" || o.Root.Kind == paddock.RootSnapshot); err != nil {
		return nil, err
	}
	conn, err := k.life.begin(ctx)
	if err != nil {
		k.life.guard.leave()
		k.life.steps.close()
		return nil, err
	}
	k.box = k.life.Box()
	// Its init runs, and a later box has another keeper.
	for _, name := range []string{FileInit, fileGateway} {
		k.life.plan.Programs.One(name).Close()
	}
	var held boxinit.Files // the image stays, as long as the sandbox does
	for i, f := range k.life.plan.Files.All() {
		if name := k.life.plan.Files.Names()[i]; name == FileImageLock {
			held.Add(name, f)
		} else {
			f.Close()
		}
	}
	k.life.plan.Files = held
	if first, err = fileOf(conn); err != nil {
		return nil, err
	}
	k.show()
	k.about.Limits = o.Limits
	if k.about.Created.IsZero() { // otherwise it is resumed
		k.about.Created = k.box.created
	}
	if k.box.Group != nil {
		k.about.Groups = k.box.Group.Dirs()
	}
	if err := k.write(); err != nil {
		first.Close()
		return nil, err
	}
	return first, nil
}

// handOver gives the maker its sandbox, and waits until the maker accepts it.
func (k *keeper) handOver(ctx context.Context, maker *sys.Channel, first *os.File, accepted <-chan bool) error {
	r := response{About: &k.about}
	if m, err := k.life.Measure(ctx); err == nil {
		r.Measure = &m
	}
	if e, err := k.life.egress(ctx); err == nil {
		r.Egress = &e
	}
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if err := maker.Send(data, first, k.shown); err != nil {
		return err
	}
	if !<-accepted {
		return fmt.Errorf("the maker went away: %w", paddock.Canceled)
	}
	k.discard()
	return nil
}

// discard removes the saved box that the sandbox was resumed from. Only now it is obsolete: the
// sandbox runs, and the maker knows. Nobody may find it again, nor resume it from another state
// directory. If this process is killed meanwhile, what is left is not complete any more.
func (k *keeper) discard() {
	saved := k.about.Saved
	if saved == "" {
		return
	}
	for _, name := range []string{recordName, SealName} {
		_ = os.Remove(filepath.Join(saved, name)) // it is removed again below
	}
	_ = os.RemoveAll(saved) // as the maker does, who may have been killed
	k.about.Saved = ""
	_ = k.write() // it is detected after this process has ended
}

// saving notes where a box is about to be saved, before anything is. If this process is killed
// before it has noted that the sandbox is paused, the next driver finds the saved box, and Remove
// removes it.
func (k *keeper) saving(dir string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.about.Saving = dir
	return k.writeLocked()
}

type keeper struct {
	dir  string
	life *Life
	box  *Box          // the life's first box: when it is suspended, this process ends
	gone chan struct{} // closed when the sandbox was removed

	directory *directory // the directory of the sandbox; without it nobody can find the sandbox

	recorded func() error // returns when all events are written

	board statusBoard // shows whether the sandbox runs
	shown *os.File    // the file by which others read it

	pausing sync.Mutex // held while it is paused and that is stored

	keeping sync.RWMutex // read-locked while there may be a snapshot of which no caller knows yet

	showing sync.Mutex // held while the content of the board is decided
	hidden  int        // guarded by showing: number of reasons not to show that it runs

	mu       sync.Mutex
	about    about // guarded by mu
	removals int   // guarded by mu; number of removals that run or succeeded
}

// remove calls f, which removes the sandbox. Meanwhile, and if it succeeds, the sandbox is not found
// to have died.
func (k *keeper) remove(f func() error) error {
	k.mu.Lock()
	k.removals++
	k.mu.Unlock()
	shown := k.hide()
	err := f()
	if err != nil { // it can be removed again, or the box can die
		k.mu.Lock()
		k.removals--
		k.mu.Unlock()
		shown()
	}
	return err
}

// show updates the board, unless it is hidden.
func (k *keeper) show() {
	k.showing.Lock()
	defer k.showing.Unlock()
	k.showLocked()
}

// showLocked is like show. The caller holds showing.
func (k *keeper) showLocked() {
	if k.hidden == 0 {
		k.board.show(k.life.Standing(context.Background()))
	}
}

// hide makes the board not show that the sandbox runs, while it is being paused or removed.
// done undoes it.
func (k *keeper) hide() (done func()) {
	k.showing.Lock()
	defer k.showing.Unlock()
	k.hidden++
	k.board.show(Standing{}, nil)
	return func() {
		k.showing.Lock()
		defer k.showing.Unlock()
		k.hidden--
		k.showLocked()
	}
}

// fileOf returns the file of a connection, and closes the connection.
func fileOf(conn net.Conn) (*os.File, error) {
	defer conn.Close()
	c, ok := conn.(interface{ File() (*os.File, error) })
	if !ok {
		return nil, fmt.Errorf("a connection to the agent that is no file (%T): %w", conn, paddock.Internal)
	}
	return c.File()
}

// listen opens the socket by a short name, because the length of socket paths is limited.
func (k *keeper) listen() (*net.UnixListener, error) {
	l, err := net.ListenUnix("unixpacket", &net.UnixAddr{Name: k.directory.inside(socketName), Net: "unixpacket"})
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	l.SetUnlinkOnClose(false)
	return l, nil
}

func (k *keeper) write() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.writeLocked()
}

// writeLocked stores what a later driver needs after the keeper's end. The caller holds mu.
func (k *keeper) writeLocked() error {
	data, err := json.Marshal(k.about)
	if err != nil {
		return err
	}
	return writeWhole(k.directory.inside(aboutName), data)
}

// serve answers requests until the sandbox was removed or has died.
func (k *keeper) serve(l *net.UnixListener) {
	serving, stop := context.WithCancel(context.Background())
	answering, abort := context.WithCancel(context.Background())
	defer abort()
	saving, drop := context.WithCancel(answering)
	defer drop()
	var jobs sync.WaitGroup
	defer func() {
		stop()
		late := time.AfterFunc(removeTime, abort) // several may remove it at once, and all get their answer
		jobs.Wait()
		late.Stop()
	}()
	jobs.Go(func() {
		select {
		case <-k.gone:
		case <-k.box.ended:
			k.show()
			k.pausing.Lock() // wait until the cause of the end is known
			suspended := k.life.suspended()
			k.pausing.Unlock()
			if suspended {
				break // serving ends when the request is answered
			}
			k.bury(drop)
		case <-serving.Done():
		}
		l.Close()
	})
	jobs.Go(func() { k.watchDirectory(serving.Done()) })
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			break
		}
		jobs.Go(func() {
			defer func() { _ = c.Close() }()
			k.converse(serving, answering, saving, c)
		})
	}
	select { // a running removal is finished
	case <-k.gone:
	case <-time.After(removeTime):
	}
}

// bury records how the sandbox died, removes its remains, and ends the process. It returns if the
// sandbox is being removed. Before, drop ends the snapshots that are being written or handed over.
func (k *keeper) bury(drop func()) {
	k.life.guard.leave() // or the gateway and the steps wait for answers
	if out := k.life.plan.Gateway; out != nil {
		out.Stop() // nothing comes after the figures below
	}
	traffic, refused := k.life.traffic(), k.life.refused()
	k.mu.Lock()
	if k.removals > 0 {
		k.mu.Unlock()
		return
	}
	k.about.Dead, k.about.Traffic, k.about.Refused = k.box.Reason(), traffic, refused
	if k.about.Undo != nil {
		k.about.Undo.Failed = k.life.steps.words()
	}
	if kills, peak, err := k.box.oom(); err == nil {
		k.about.Kills, k.about.Peak = kills, peak
	}
	_ = k.writeLocked() // otherwise the next driver reports that the keeper is gone
	k.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), removeTime)
	_ = k.box.Remove(ctx) // the next Remove reports what is left
	cancel()
	k.life.steps.close()
	_ = k.recorded() // an event that cannot be written has ended the box
	drop()
	k.keeping.Lock() // a snapshot that nobody was told of would stay
	k.mu.Lock()
	if k.removals == 0 { // otherwise somebody has asked for it meanwhile, and it must not be cut off
		os.Exit(0)
	}
	k.mu.Unlock()
	k.keeping.Unlock()
}

// converse answers the requests of one connection until that or serving ends. Answers end with answering, and
// snapshots with saving.
func (k *keeper) converse(serving, answering, saving context.Context, c *net.UnixConn) {
	ch, err := sys.ChannelOf(c)
	if err != nil {
		return
	}
	defer func() { _ = ch.Close() }()
	for {
		stop := ch.Until(serving)
		data, extra, err := ch.Receive()
		stop()
		for _, f := range extra {
			f.Close()
		}
		if err != nil {
			return
		}
		var q request
		var r response
		var files []*os.File
		if err := json.Unmarshal(data, &q); err != nil {
			r = failed(fmt.Errorf("request: %w: %w", err, paddock.Invalid))
		} else if q.Op == "step" {
			_ = k.converseStep(serving, answering, ch, q) // a caller that is gone
			return
		} else {
			ctx := answering
			switch {
			case q.Op == "snapshot":
				ctx = saving
			case q.follows():
				ctx = serving // the end of the process waits for nobody who waits for news
			}
			r, files = k.hear(ctx, ch, q)
		}
		err = tell(ch, r, files...)
		if q.Op == "snapshot" && r.Error == "" {
			err = k.hand(saving, ch, q, r.Saved, err)
		}
		for _, f := range files {
			if f != k.shown {
				f.Close()
			}
		}
		if (q.Op == "remove" || q.Op == "pause" && k.life.image() != nil) && r.Error == "" {
			k.finish() // even if the caller did not wait for it
			return
		}
		if err != nil {
			return
		}
	}
}

// tell sends a response.
func tell(ch *sys.Channel, r response, files ...*os.File) error {
	data, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return ch.Send(data, files...)
}

// hear answers a request. If the caller leaves before the answer, it ends what would change the sandbox's limits and
// rules, or write a snapshot, without the caller's knowledge. A pause, a resumption and a removal go on: the status
// tells of them.
func (k *keeper) hear(ctx context.Context, ch *sys.Channel, q request) (response, []*os.File) {
	if q.Op != "update" && q.Op != "snapshot" && !q.follows() {
		return k.answer(ctx, q)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer ch.OnHangUp(cancel)()
	return k.answer(ctx, q)
}

// hand makes a snapshot the caller's, who was sent its ID with the result sent. One that is not is removed. The
// snapshot's request has read-locked keeping.
func (k *keeper) hand(ctx context.Context, ch *sys.Channel, q request, id paddock.SnapshotID, sent error) error {
	defer k.keeping.RUnlock()
	err := sent
	if q.Keeps && err == nil {
		err = k.kept(ctx, ch)
	}
	if err == nil {
		return nil
	}
	if left := k.life.discard(id); left != nil {
		err = errors.Join(err, fmt.Errorf("remove snapshot %s: %w", id, left))
	}
	return errors.Join(err, tell(ch, failed(fmt.Errorf("the snapshot was removed, because nobody took it: %w", paddock.Canceled))))
}

// kept waits until the caller takes a snapshot.
func (k *keeper) kept(ctx context.Context, ch *sys.Channel) error {
	stop := ch.Until(ctx)
	data, files, err := ch.Receive()
	CloseAll(files)
	if stop(); err != nil {
		_ = ch.Within(removeTime) // for words to a caller who may be there
		return err
	}
	var q request
	if err := json.Unmarshal(data, &q); err != nil || q.Op != "keep" {
		return fmt.Errorf("request %q instead of keep: %w", q.Op, errors.Join(err, paddock.Invalid))
	}
	return tell(ch, response{})
}

func (k *keeper) finish() {
	k.mu.Lock()
	defer k.mu.Unlock()
	select {
	case <-k.gone:
	default:
		close(k.gone)
	}
}

func failed(err error) response {
	r := response{Error: err.Error(), Kind: paddock.KindOf(err), Host: isHostFault(err)}
	var missing *paddock.MissingError
	if errors.As(err, &missing) {
		r.Missing = &missing.Finding
	}
	return r
}

func (k *keeper) answer(ctx context.Context, q request) (response, []*os.File) {
	wait := q.Wait
	switch {
	case wait > 0:
	case q.Op == "update": // the inside decides how long it takes, and a caller that leaves ends it
		wait = updateTime
	default:
		wait = removeTime
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if err := k.meant(q); err != nil {
		return failed(err), nil
	}
	var err error
	switch q.Op {
	case "connect":
		var f *os.File
		if f, err = k.box.connect(); err == nil {
			return response{}, []*os.File{f, k.shown}
		}
	case "stand":
		var st Standing
		if st, err = k.life.Standing(ctx); err == nil {
			return response{Standing: &st}, nil
		}
	case "measure":
	case "update":
		err = k.update(ctx, q.Update)
	case "pause":
		err = k.pause(ctx)
	case "resume":
		k.pausing.Lock() // wait until it is known whether it was paused
		suspended := k.life.suspended()
		k.pausing.Unlock()
		if suspended {
			// This process ends with the pause. The resumed sandbox gets another keeper.
			err = fmt.Errorf("the keeper of what is paused ends: %w", paddock.Unavailable)
			break
		}
		if err = k.life.resume(ctx); err == nil {
			err = k.noteHalt("")
		}
		k.show()
	case "inspect":
		var i boxinit.Inspection
		if i, err = k.life.Inspect(ctx); err == nil {
			fit(&i)
			return response{Inspect: &i}, nil
		}
	case "spec":
		var s paddock.Spec
		if s, err = k.life.spec(ctx); err == nil {
			return response{Spec: &s}, nil
		}
	case "egress":
		var e gatewayclient.State
		if e, err = k.life.egress(ctx); err == nil {
			return response{Egress: &e}, nil
		}
	case "questions":
		var list []paddock.MonitorQuestion
		if list, err = k.life.questions(ctx, q.Await); err == nil {
			return response{Questions: list}, nil
		}
	case "verdicts":
		if k.life.guard == nil {
			err = errUnmonitored()
			break
		}
		list, last := k.life.guard.told.after(ctx, q.After)
		return response{Events: list, Last: last}, nil
	case "reply":
		if err = k.life.reply(ctx, q.Question, q.Allow); err == nil {
			return response{}, nil
		}
	case "snapshot":
		var id paddock.SnapshotID
		if q.Save == nil {
			q.Save = &paddock.SnapshotOptions{}
		}
		k.keeping.RLock()
		if id, err = k.life.snapshot(ctx, *q.Save); err == nil {
			return response{Saved: id}, nil // converse hands it over
		}
		k.keeping.RUnlock()
	case "remove":
		if err = k.remove(func() error {
			if err := k.life.remove(ctx); err != nil {
				return err
			}
			return forgetDir(k.dir)
		}); err == nil {
			return response{}, nil
		}
	default:
		err = fmt.Errorf("request %q: %w", q.Op, paddock.Unsupported)
	}
	if err != nil {
		return failed(err), nil
	}
	m, err := k.life.Measure(ctx)
	if err != nil {
		return failed(err), nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	a := k.about
	a.Labels = maps.Clone(a.Labels)
	return response{Measure: &m, About: &a}, nil
}

// fit shortens an inspection to what fits into an answer, because a command chooses how many
// refusals there are, and how long they are.
func fit(i *boxinit.Inspection) {
	i.Refusals = gatewayclient.FitRefusals(i.Refusals, gatewayclient.InsideMax)
}

// pause pauses the sandbox. A saved sandbox needs no keeper, because its directory has
// everything.
func (k *keeper) pause(ctx context.Context) error {
	k.pausing.Lock()
	defer k.pausing.Unlock()
	shown := k.hide()
	err := k.life.pause(ctx)
	shown()
	saved := k.life.image()
	if err != nil || saved == nil { // it is paused in place, and needs its keeper
		return err
	}
	k.life.steps.close() // the next keeper records what comes
	k.mu.Lock()
	defer k.mu.Unlock()
	k.about.Monitor = k.life.guard.later(k.about.Monitor)
	k.about.Saved, k.about.Saving, k.about.Traffic = saved.Dir(), "", k.life.traffic()
	r := record{ID: paddock.ID(filepath.Base(k.dir)), Dir: k.dir, About: k.about}
	return HostFault(errors.Join(r.write(saved.Dir()), k.writeLocked()))
}

func (k *keeper) update(ctx context.Context, u *paddock.Update) error {
	if u == nil {
		return nil
	}
	if u.Limits != nil || u.Policy != nil {
		if err := k.life.update(ctx, paddock.Update{Limits: u.Limits, Policy: u.Policy}); err != nil {
			return err
		}
		k.mu.Lock()
		k.about.Limits = k.life.Box().Limits()
		err := k.writeLocked()
		k.mu.Unlock()
		if err != nil {
			return err
		}
	}
	if u.Labels != nil {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.about.Labels = u.Labels
		return k.writeLocked()
	}
	return nil
}
