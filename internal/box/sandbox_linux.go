package box

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/guestclient"
)

// A boxOwner gives access to the process that owns a box: this one, or a keeper.
type boxOwner interface {
	// connect returns a connection to the agent and the owner's board. The board is nil if
	// the owner is this process, which can be queried directly.
	connect(ctx context.Context) (net.Conn, *statusBoard, error)
	Measure(ctx context.Context) (Measure, error)
	// Standing returns whether the box runs, and kills how many of its processes were
	// killed for lack of memory. Measure has both, but costs more.
	Standing(ctx context.Context) (Standing, error)
	kills(ctx context.Context) (int64, error)
	// update changes limits that are not zero, and, if not nil, policy and labels.
	update(ctx context.Context, u paddock.Update) error
	pause(ctx context.Context) error
	resume(ctx context.Context) error
	remove(ctx context.Context) error
	// Inspect asks for what only the init of a box with a guest kernel knows.
	Inspect(ctx context.Context) (boxinit.Inspection, error)
	// egress returns the state of the gateway.
	egress(ctx context.Context) (gatewayclient.State, error)
	// step begins a step that a caller makes, and returns what ends it. Nil says that it is not known how the step ended.
	step(ctx context.Context, kind string, command []string) (end endStep, err error)
	// follow runs f, which ends when a command has ended, in the background. It reports false if it cannot.
	follow(f func(context.Context)) bool
	// spec returns the spec as it was asked for, with later changes.
	spec(ctx context.Context) (paddock.Spec, error)
	// questions and reply are of the monitor of the sandbox.
	questions(ctx context.Context, wait bool) ([]paddock.MonitorQuestion, error)
	reply(ctx context.Context, question string, allow bool) error
	// snapshot saves a box, which continues to run.
	snapshot(ctx context.Context, o paddock.SnapshotOptions) (paddock.SnapshotID, error)
}

// An about is what does not change in the life of a sandbox, except labels.
type about struct {
	Created  time.Time         `json:"created"`
	User     string            `json:"user"`
	Dir      string            `json:"dir"`
	Labels   map[string]string `json:"labels,omitempty"`
	Enforced []paddock.Finding `json:"enforced"`
	Lifetime time.Duration     `json:"lifetime,omitempty"`
	Limits   paddock.Limits    `json:"limits"`
	Groups   []string          `json:"groups,omitempty"`  // directories of the control group
	Dead     string            `json:"dead,omitempty"`    // how it died
	Kills    int64             `json:"kills,omitempty"`   // processes killed for lack of memory at its death
	Peak     int64             `json:"peak,omitempty"`    // maximum memory use at its death, in bytes
	Network  bool              `json:"network,omitempty"` // it has a gateway
	Keys     bool              `json:"keys,omitempty"`    // it has key agents
	Saved    string            `json:"saved,omitempty"`   // directory of the saved box while it is paused
	Saving   string            `json:"saving,omitempty"`  // directory where a pause last began to save the box

	Undo    *recording `json:"undo,omitempty"`    // nil if no steps are recorded
	Monitor *monitored `json:"monitor,omitempty"` // nil without a monitor

	Traffic *paddock.Traffic  `json:"traffic,omitempty"` // at its pause or death
	Refused []paddock.Refusal `json:"refused,omitempty"` // until its death
}

// A Sandbox is a sandbox as its user sees it.
type Sandbox struct {
	id     paddock.ID
	driver *Driver
	owner  boxOwner
	lately bool   // the driver may return it again
	done   func() // called when it was removed; may be nil

	dialing chan struct{} // has an element while the connection to the agent is being remade

	mu      sync.Mutex
	about   about              // guarded by mu
	link    *guestclient.Guest // guarded by mu; nil until it is needed
	board   *statusBoard       // guarded by mu; of the owner who made link; nil if that is this process
	removed bool               // guarded by mu
	samples []sample           // guarded by mu
}

// ID implements paddock.Sandbox.
func (s *Sandbox) ID() paddock.ID { return s.id }

// attach sets conn as the connection to the agent, and b as the owner's board, which may be
// nil.
func (s *Sandbox) attach(conn net.Conn, b *statusBoard, lifetime time.Duration) error {
	aside := func(ctx context.Context) (net.Conn, error) {
		conn, b, err := s.owner.connect(ctx)
		b.close() // the first one's board is used
		return conn, err
	}
	// The connection holds Paused for as long as it stands. Paused must not hold the sandbox, which holds the
	// connection: then neither would ever be dropped.
	owner := s.owner
	g, err := guestclient.New(conn, guestclient.Options{
		Aside: aside,
		Amend: func(start guestclient.Start, exit *paddock.Exit) { s.driver.tier.Client.Amend(s, start, exit) }, Gone: s.gone, Again: s.again, Lifetime: lifetime,
		Stuck: func() {
			ctx, cancel := context.WithTimeout(context.Background(), removeTime)
			defer cancel()
			_ = s.owner.remove(ctx)
		},
		Paused: func() bool {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			st, err := owner.Standing(ctx)
			return err == nil && st.State == paddock.Paused
		},
	})
	if err != nil {
		conn.Close()
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link, s.board = g, b
	return nil
}

// warm starts the tier's first exchange with the agent, while the box is being built. The
// driver waits for it.
func (s *Sandbox) warm() {
	agent := s.link
	s.driver.site.Go(func(ctx context.Context) { s.driver.tier.Client.Warm(ctx, agent) })
}

// guest returns the connection to the agent, and remakes a broken one.
func (s *Sandbox) guest(ctx context.Context) (*guestclient.Guest, error) {
	if g, err := s.linked(); g != nil || err != nil {
		return g, err
	}
	select { // one caller at a time remakes it
	case s.dialing <- struct{}{}:
		defer func() { <-s.dialing }()
	case <-ctx.Done():
		return nil, fmt.Errorf("sandbox %s: %w: %w", s.id, ctx.Err(), EndKind(ctx.Err()))
	}
	if g, err := s.linked(); g != nil || err != nil {
		return g, err
	}
	st, err := s.owner.Standing(ctx)
	if err != nil {
		return nil, fmt.Errorf("sandbox %s: %w", s.id, err)
	}
	if st.State == paddock.Paused && s.driver.tier.Suspends {
		return nil, fmt.Errorf("sandbox %s is paused: %w", s.id, paddock.Conflict)
	}
	if st.State == paddock.Dead {
		return nil, fmt.Errorf("sandbox %s is dead: %s: %w", s.id, st.Reason, paddock.Unavailable)
	}
	conn, board, err := s.owner.connect(ctx)
	if err != nil {
		return nil, fmt.Errorf("sandbox %s: %w", s.id, err)
	}
	s.mu.Lock()
	old, lifetime := s.link, s.about.Lifetime
	s.mu.Unlock()
	if old != nil {
		_ = old.Close() // it broke, and only holds memory
	}
	if err := s.attach(conn, board, lifetime); err != nil {
		return nil, fmt.Errorf("sandbox %s: %w", s.id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.link, nil
}

// linked returns the connection to the agent if it is intact.
func (s *Sandbox) linked() (*guestclient.Guest, error) {
	s.mu.Lock()
	g, removed := s.link, s.removed
	s.mu.Unlock()
	if removed {
		return nil, fmt.Errorf("sandbox %s was removed: %w", s.id, paddock.Unavailable)
	}
	if g == nil {
		return nil, nil
	}
	select {
	case <-g.Done():
		return nil, nil
	default:
		return g, nil
	}
}

// running returns the connection to the agent of a sandbox that is not paused, because a
// stopped agent would not answer.
func (s *Sandbox) running(ctx context.Context) (*guestclient.Guest, error) {
	g, err := s.guest(ctx)
	if err != nil {
		return nil, err
	}
	if s.lately {
		s.driver.recents.use(s)
	}
	if s.shown() {
		return g, nil
	}
	st, err := s.owner.Standing(ctx)
	switch {
	case err != nil:
		return nil, fmt.Errorf("sandbox %s: %w", s.id, err)
	case st.State == paddock.Paused:
		return nil, fmt.Errorf("sandbox %s is paused: %w", s.id, paddock.Conflict)
	}
	return g, nil
}

// stands reports whether it was not removed, and its connection to the agent is intact.
func (s *Sandbox) stands() bool {
	g, err := s.linked()
	return g != nil && err == nil
}

// same reports whether o is the same sandbox, and then takes over o's description.
func (s *Sandbox) same(o *Sandbox) bool {
	o.mu.Lock()
	now := o.about
	o.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.removed || !s.about.Created.Equal(now.Created) {
		return false
	}
	s.about = now
	return true
}

// shown reports whether its owner shows that it runs.
func (s *Sandbox) shown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.board.goes()
}

func (s *Sandbox) sample(kills int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.samples); n > 0 && s.samples[n-1].kills == kills {
		return
	}
	s.samples = append(s.samples, sample{time.Now(), kills})
	if len(s.samples) > 1000 {
		s.samples = slices.Delete(s.samples, 0, 500)
	}
}

// killsBefore returns how many had been killed when a process started.
func (s *Sandbox) killsBefore(t time.Time) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	kills := int64(0)
	for _, sm := range s.samples {
		if sm.at.After(t) {
			break
		}
		kills = sm.kills
	}
	return kills
}

// again returns the connection to the agent of a sandbox that was paused, after it is
// resumed; nil if it is not.
func (s *Sandbox) again(ctx context.Context) *guestclient.Guest {
	if !s.driver.tier.Suspends {
		return nil // a paused sandbox keeps its connections
	}
	for {
		st, err := s.owner.Standing(ctx)
		switch {
		case err != nil || st.State == paddock.Dead:
			return nil
		case st.State == paddock.Ready:
			g, err := s.guest(ctx)
			if err != nil {
				return nil
			}
			return g
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(againTime):
		}
	}
}

// againTime is the interval of checks whether a paused sandbox was resumed.
const againTime = 50 * time.Millisecond

// gone returns why the connection ended.
func (s *Sandbox) gone() string {
	s.mu.Lock()
	removed := s.removed
	s.mu.Unlock()
	if removed {
		return "the sandbox was removed"
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for {
		st, err := s.owner.Standing(ctx)
		switch {
		case errors.Is(err, paddock.NotFound):
			return "the sandbox was removed"
		case err != nil:
			return err.Error()
		case st.State == paddock.Dead:
			return st.Reason
		case st.State == paddock.Paused && s.driver.tier.Suspends:
			return "the sandbox is paused"
		}
		// Its init has closed the connection and is about to end.
		select {
		case <-ctx.Done():
			return "the agent closed the connection"
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// Status implements paddock.Sandbox.
func (s *Sandbox) Status(ctx context.Context) (paddock.Status, error) {
	inside, cancel := context.WithTimeout(ctx, insideTime)
	defer cancel()
	return s.status(ctx, inside)
}

// insideTime is how long a status may wait for what only the inside of a sandbox knows.
const insideTime = 10 * time.Second

// status returns the status that the sandbox's owner knows. Refusals come from the inside, which
// may be hostile: it can delay the status until the context inside ends, and it can hide its
// refusals, which the status then says. It cannot make the status fail.
func (s *Sandbox) status(ctx, inside context.Context) (paddock.Status, error) {
	m, err := s.owner.Measure(ctx)
	if err != nil {
		return paddock.Status{}, fmt.Errorf("status of sandbox %s: %w", s.id, err)
	}
	st := s.tell(m)
	if m.State != paddock.Ready {
		return st, nil
	}
	if err = s.tellInside(ctx, inside, m, &st); err == nil {
		return st, nil
	}
	switch now, e := s.owner.Measure(ctx); {
	case ctx.Err() != nil:
		return st, fmt.Errorf("status of sandbox %s: %w: %w", s.id, ctx.Err(), EndKind(ctx.Err()))
	case e != nil: // it was removed meanwhile
		return st, fmt.Errorf("status of sandbox %s: %w", s.id, e)
	case now.State != paddock.Ready: // it ended meanwhile
		return s.tell(now), nil
	}
	st.Reason = boxinit.Words("not all that was refused is known: "+err.Error(), boxinit.MaxWords)
	return st, nil
}

// tellInside adds what the box and its gateway know to a status. The text of its error may be
// hostile, and its kind means nothing.
func (s *Sandbox) tellInside(ctx, inside context.Context, m Measure, st *paddock.Status) error {
	err := errSilent
	if !m.Silent { // else it would not answer now either
		var g *guestclient.Guest
		if g, err = s.guest(inside); err == nil {
			err = s.driver.tier.Client.Refusals(inside, s, g, st)
			st.Refused = gatewayclient.FitRefusals(st.Refused, gatewayclient.InsideMax)
		}
	}
	if !s.outside() {
		return err
	}
	e, failed := s.owner.egress(ctx)
	if failed == nil {
		s.tellEgress(st, e)
	}
	return errors.Join(err, failed)
}

var errSilent = errors.New("the machine does not answer")

// tell makes a status from a measure, without queries.
func (s *Sandbox) tell(m Measure) paddock.Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.about != nil { // another driver may have changed them
		s.about.Labels = m.about.Labels
	}
	a := s.about
	if p := m.Monitor; p != nil && p.Paused != "" && m.State == paddock.Paused && m.Reason == "" {
		m.Reason = "the monitor paused it: " + p.Paused
	}
	return paddock.Status{
		ID: s.id, Tier: s.driver.tier.Name, State: m.State, Reason: m.Reason, Created: a.Created, User: a.User, Dir: a.Dir,
		Limits: m.Limits, Labels: maps.Clone(a.Labels), Usage: m.Usage, Traffic: m.Traffic, Enforced: slices.Clone(a.Enforced), Refused: slices.Clone(m.Refused),
		Undo: a.Undo.tell(m.Unrecorded), Monitor: m.Monitor,
	}
}

// outside reports whether something outside refuses what commands do: a gateway, or what is before a key agent.
func (s *Sandbox) outside() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.about.Network || s.about.Keys
}

// networked reports whether there is a gateway.
func (s *Sandbox) networked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.about.Network
}

// tellEgress adds what was refused outside, and the gateway's state, to a status.
func (s *Sandbox) tellEgress(st *paddock.Status, e gatewayclient.State) {
	st.Refused = gatewayclient.JoinRefusals(st.Refused, e.Refused)
	if !s.networked() {
		return
	}
	for i, f := range st.Enforced {
		if f.Control == paddock.ControlNetwork {
			st.Enforced[i] = e.Finding(ListHow)
		}
	}
}

// Start implements paddock.Sandbox.
func (s *Sandbox) Start(ctx context.Context, cmd paddock.Cmd) (paddock.Process, error) {
	g, err := s.running(ctx)
	if err != nil {
		return nil, err
	}
	s.driver.tier.Client.Starting(ctx, s)
	if !s.records() {
		return g.Start(ctx, cmd)
	}
	end, err := s.step(ctx, runStep, cmd.Args)
	if err != nil {
		return nil, err
	}
	p, err := g.Start(ctx, cmd)
	if err != nil {
		end(ctx, nil)
		return nil, err
	}
	recorded := make(chan struct{})
	follow := func(ctx context.Context) { // ends with the process, which ends with the sandbox
		defer close(recorded)
		exit, err := p.Wait(ctx)
		if err != nil {
			end(ctx, nil)
			return
		}
		end(ctx, &exit)
	}
	if !s.owner.follow(follow) { // the driver is being closed
		end(ctx, nil)
		close(recorded)
	}
	return recordedProcess{p, recorded}, nil
}

// Attach implements paddock.Sandbox.
func (s *Sandbox) Attach(ctx context.Context, pid paddock.PID, out paddock.Output) (paddock.Process, error) {
	g, err := s.running(ctx)
	if err != nil {
		return nil, err
	}
	return g.Attach(ctx, pid, out)
}

// Processes implements paddock.Sandbox.
func (s *Sandbox) Processes(ctx context.Context) ([]paddock.ProcessInfo, error) {
	g, err := s.running(ctx)
	if err != nil {
		return nil, err
	}
	return g.Processes(ctx)
}

// Dial implements paddock.Sandbox.
func (s *Sandbox) Dial(ctx context.Context, port int) (net.Conn, error) {
	g, err := s.running(ctx)
	if err != nil {
		return nil, err
	}
	return g.Dial(ctx, port)
}

// Update implements paddock.Sandbox.
func (s *Sandbox) Update(ctx context.Context, u paddock.Update) error {
	if u.Policy != nil {
		if err := checkNetwork(&paddock.Spec{Policy: *u.Policy}); err != nil {
			return fmt.Errorf("update sandbox %s: %w", s.id, err)
		}
	}
	if l := u.Limits; l != nil {
		if err := checkLimits(*l); err != nil {
			return fmt.Errorf("update sandbox %s: %w", s.id, err)
		}
		s.mu.Lock()
		now := s.about.Limits
		s.mu.Unlock()
		if l.Disk != 0 && l.Disk != now.Disk || l.Files != 0 && l.Files != now.Files || l.Lifetime != 0 && l.Lifetime != now.Lifetime {
			return fmt.Errorf("update sandbox %s: disk, open files and lifetime cannot be changed while the sandbox lives: %w", s.id, paddock.Unsupported)
		}
	}
	if err := s.owner.update(ctx, u); err != nil {
		return fmt.Errorf("update sandbox %s: %w", s.id, err)
	}
	if u.Labels != nil {
		s.mu.Lock()
		s.about.Labels = maps.Clone(u.Labels)
		s.mu.Unlock()
	}
	return nil
}

// Snapshot implements paddock.Sandbox.
func (s *Sandbox) Snapshot(ctx context.Context, o paddock.SnapshotOptions) (paddock.SnapshotID, error) {
	if s.driver.tier.Snapshots == nil {
		return "", fmt.Errorf("snapshot of sandbox %s: this tier has none yet: %w", s.id, paddock.Unsupported)
	}
	if _, err := s.running(ctx); err != nil {
		return "", fmt.Errorf("snapshot: %w", err)
	}
	id, err := s.owner.snapshot(ctx, o)
	if err != nil {
		return "", fmt.Errorf("snapshot of sandbox %s: %w", s.id, err)
	}
	return id, nil
}

// Spec implements paddock.Specified.
func (s *Sandbox) Spec(ctx context.Context) (paddock.Spec, error) {
	spec, err := s.owner.spec(ctx)
	if err != nil {
		return paddock.Spec{}, fmt.Errorf("spec of sandbox %s: %w", s.id, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	spec.Labels = maps.Clone(s.about.Labels)
	return spec, nil
}

// Pause implements paddock.Sandbox. Calls about files that wait for the agent end: they would wait for
// the resume.
func (s *Sandbox) Pause(ctx context.Context) error {
	if err := s.owner.pause(ctx); err != nil {
		return fmt.Errorf("sandbox %s: %w", s.id, err)
	}
	s.mu.Lock()
	g := s.link
	s.mu.Unlock()
	if g != nil {
		g.Rest()
	}
	return nil
}

// Resume implements paddock.Sandbox.
func (s *Sandbox) Resume(ctx context.Context) error {
	if err := s.owner.resume(ctx); err != nil {
		return fmt.Errorf("sandbox %s: %w", s.id, err)
	}
	return nil
}

// MonitorQuestions implements paddock.Monitored.
func (s *Sandbox) MonitorQuestions(ctx context.Context, wait bool) ([]paddock.MonitorQuestion, error) {
	list, err := s.owner.questions(ctx, wait)
	if err != nil {
		return nil, fmt.Errorf("sandbox %s: %w", s.id, err)
	}
	return list, nil
}

// AnswerMonitor implements paddock.Monitored.
func (s *Sandbox) AnswerMonitor(ctx context.Context, question string, allow bool) error {
	if err := s.owner.reply(ctx, question, allow); err != nil {
		return fmt.Errorf("sandbox %s: %w", s.id, err)
	}
	return nil
}

// Remove implements paddock.Sandbox.
func (s *Sandbox) Remove(ctx context.Context) error {
	s.mu.Lock()
	s.removed = true
	g := s.link
	s.mu.Unlock()
	if err := s.owner.remove(ctx); err != nil && !errors.Is(err, paddock.NotFound) {
		s.mu.Lock()
		s.removed = false // other holders find out what is left of it
		s.mu.Unlock()
		return fmt.Errorf("sandbox %s: %w", s.id, err)
	}
	s.driver.forget(s)
	if s.done != nil {
		s.done()
	}
	if g != nil {
		return g.Close()
	}
	return nil
}

// letGo closes the connection of an unused sandbox; it is remade at the next use.
func (s *Sandbox) letGo() {
	s.mu.Lock()
	g := s.link
	s.link = nil
	s.mu.Unlock()
	if g != nil {
		_ = g.Close()
	}
}

// FS returns the files. It looks up the agent at each call, because a connection may break
// and be remade.
func (s *Sandbox) FS() paddock.FS { return files{s} }
