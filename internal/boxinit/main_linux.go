package boxinit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
	"github.com/paddock-sandbox/paddock/internal/guest/nameserver"
	"github.com/paddock-sandbox/paddock/internal/seccomp"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Main runs a box and does not return. Commands run on k; nil means the host's kernel.
func Main(k GuestKernel) {
	control, err := sys.NewChannel(ControlFD)
	if err != nil {
		os.Exit(1) // nobody to report to
	}
	report := func(r Report) {
		data, err := json.Marshal(r)
		if err == nil {
			_ = control.Send(data) // a host that is gone needs no report
		}
	}
	p := &initProcess{control: control, guestKernel: k, gate: make(chan struct{})}
	p.brokerFailed = func(err error) {
		report(Report{Error: Words(err.Error(), MaxWords), Kind: paddock.KindOf(err), Step: "answer a call"})
		os.Exit(BrokerFailed)
	}
	err = p.run(report) // run only returns after a failure
	report(Report{Error: err.Error(), Kind: paddock.KindOf(err), Step: p.step})
	os.Exit(1)
}

// An initProcess is the box's process 1.
type initProcess struct {
	control     *sys.Channel
	guestKernel GuestKernel // nil means the host's kernel
	step        string      // the current step, for the report of a failure
	config      Config
	server      *guest.Server
	gate        chan struct{} // closed when a command has run inside
	score       *os.File      // this process's OOM score adjustment
	spawn       *spawner
	ledger      *os.File // of FileLedger; nil without one
	witness     *witness // of FileWitness; nil without one
	broker      *broker
	view        *view // nil on a guest kernel
	reached     reached
	tally       tally
	// brokerFailed is the broker's fail.
	brokerFailed func(error)
	names        *nameserver.Server // nil with a network

	mu     sync.Mutex // guards config.PIDs once the box serves
	saving sync.Mutex // held while the kernel is saved or continued
}

func (p *initProcess) run(report func(Report)) error {
	p.step = "start"
	if err := sys.DieWithParent(); err != nil {
		return err
	}
	// The box must not get descriptors that the maker inherited.
	if err := sys.CloseFrom(ConnFD + 1); err != nil {
		return err
	}
	sys.CloseOnExec(ConnFD)
	files, err := p.receive()
	if err != nil {
		return err
	}
	// Open it now, because a process that is not dumpable can no longer open it.
	if p.score, err = os.OpenFile("/proc/self/oom_score_adj", os.O_RDWR, 0); err != nil {
		return err
	}
	if p.guestKernel == nil { // otherwise the kernel's processes are still to be made, which needs this process's /proc
		if err := sys.NotDumpable(); err != nil {
			return err
		}
		if err := p.prepareAgent(); err != nil {
			return err
		}
	}
	if p.config.Link && p.guestKernel == nil {
		if err := p.makeLink(files); err != nil {
			return err
		}
	}
	p.step = "keep the time stamps of packets"
	if err := sys.KeepTimestamps(); err != nil {
		return err
	}
	p.step = "build the file tree"
	sys.Umask(0)
	if p.guestKernel == nil {
		if p.view, err = newView(files); err != nil {
			return fmt.Errorf("show the size of the box: %w", err)
		}
		if p.tally, err = newTally(files); err != nil {
			return err
		}
	}
	if err := build(p.config.Mounts, files, p.view, p.private(files)); err != nil {
		return err
	}
	if err := p.boundQuotas(); err != nil {
		return err
	}
	if p.guestKernel != nil {
		return p.runGuestKernel(files, report)
	}
	files.Close() // the files are mounted, or sent back to the host; the agent does not need them
	p.step = "enter the working directory"
	if st, err := os.Stat(p.config.Dir); err != nil || !st.IsDir() {
		return fmt.Errorf("%s is not a directory in the sandbox: %w", p.config.Dir, paddock.Invalid)
	}
	p.step = "name the box"
	if err := sys.SetHostname(p.config.Hostname); err != nil {
		return err
	}
	if !p.config.HostNet {
		if err := p.openLoopback(); err != nil {
			return err
		}
	}
	if err := p.confine(); err != nil {
		return err
	}
	return p.serve(report)
}

// openLoopback brings up the loopback interface. Without another one, this process answers queries for
// names there.
func (p *initProcess) openLoopback() error {
	if err := sys.LoopbackUp(); err != nil || p.config.Link {
		return err
	}
	c, err := nameserver.Listen()
	if err != nil {
		return err
	}
	p.names = nameserver.New(os.Hostname, func(a nameserver.Asked) {
		for _, r := range nameserver.Refusals([]nameserver.Asked{a}) {
			p.broker.record(r)
		}
	})
	go func() {
		<-p.gate // there is a broker
		_ = p.names.Serve(c)
	}()
	return nil
}

// receive reads the configuration and the descriptors that come with it.
func (p *initProcess) receive() (*Files, error) {
	data, fds, err := p.control.Receive()
	if err != nil {
		return nil, fmt.Errorf("receive configuration: %w", err)
	}
	if err := json.Unmarshal(data, &p.config); err != nil {
		return nil, fmt.Errorf("read configuration: %w", err)
	}
	files, err := NamedFiles(p.config.Names, fds)
	if err == nil && files.One(FileLedger) != nil {
		p.ledger, err = sys.Duplicate(files.One(FileLedger)) // the others are closed when the tree is built
	}
	if err == nil {
		p.witness, err = newWitness(files)
	}
	return files, err
}

// confine drops every privilege and installs the restrictions. The order matters: each step
// needs what later steps take away.
func (p *initProcess) confine() error {
	c := &p.config
	p.step = "set resource limits"
	// A core limit of one byte: with zero bytes, a host that pipes cores to a program would
	// still run it.
	for _, l := range []struct {
		what sys.Resource
		n    int64
	}{
		{sys.ResourceCore, 1}, {sys.ResourceFiles, int64(c.Files)}, {sys.ResourcePIDs, int64(c.PIDs)},
	} {
		if l.n == 0 {
			continue
		}
		if _, err := sys.SetResource(l.what, uint64(l.n)); err != nil {
			return err
		}
	}
	p.step = "drop capabilities"
	// The thread that starts commands is restricted more than the others. What it has
	// dropped, no command ever has.
	p.spawn = newSpawner(p.score, c.PIDs-SpareThreads)
	if err := p.spawn.do(func() error { return errors.Join(sys.NoRoot(), sys.DropBounding()) }); err != nil {
		return err
	}
	if err := p.spawn.do(sys.NewSessionKeyring); err != nil {
		return err
	}
	// The broker reads the arguments of commands that are not dumpable. Commands have no capability.
	if err := sys.KeepOnlyPtrace(); err != nil {
		return err
	}
	if err := p.spawn.do(sys.DropThreadCapabilities); err != nil {
		return err
	}
	p.step = "filter system calls"
	base, err := seccomp.Base()
	if err != nil {
		return err
	}
	if err := sys.SeccompAll(base); err != nil { // with no_new_privs
		return err
	}
	p.step = "restrict commands"
	return p.confineCommands()
}

// confineCommands installs the restrictions that only apply to commands.
//
// Landlock is one of them. It does not apply to the agent, because the broker must do what
// commands may not. Also, a process can only inspect another one (to read the path in a
// system call) if it is not restricted more than that one.
func (p *initProcess) confineCommands() error {
	c := &p.config
	reported, err := seccomp.Reported(len(c.Trees) > 0)
	if err != nil {
		return err
	}
	br, err := newBroker(c)
	if err != nil {
		return err
	}
	if err := br.keepTops(c.Trees); err != nil {
		return err
	}
	br.ledger.file, br.view, br.fail = p.ledger, p.view, p.brokerFailed
	if err := br.observe(p.witness); err != nil {
		return err
	}
	br.noFile = func() { p.reached.add(filesReached(c.Files)) }
	var listener *os.File
	err = p.spawn.do(func() error {
		// The broker's umask is zero, because it applies the callers' umasks.
		if err := sys.OwnFiles(); err != nil {
			return err
		}
		sys.Umask(0o022)
		if c.Landlock {
			if err := sys.LandlockThread(br.writable); err != nil {
				return err
			}
		}
		if listener, err = sys.SeccompListen(reported); err != nil {
			return err
		}
		br.filters, err = sys.FiltersOfThread()
		return err
	})
	if err != nil {
		return err
	}
	p.broker = br
	return br.serve(listener)
}

// prepareAgent makes the agent and lets it serve the first connection while the box is
// still being built. It answers nothing before p.gate is closed.
func (p *initProcess) prepareAgent() error {
	server, err := guest.New(guest.Options{
		User: p.config.User, Env: p.config.Env, Dir: p.config.Dir, Init: true, Gate: p.gate,
		StartProcess: func(argv0 string, argv []string, attr *guest.ProcAttr) (int, error) {
			defer p.view.kick()
			return p.spawn.start(argv0, argv, attr)
		},
		Guard: p, Refusals: p.refusals,
	})
	if err != nil {
		return err
	}
	p.server = server
	go guestpb.Warm() // short, on a processor that is otherwise idle
	conn, err := connOf(os.NewFile(ConnFD, "connection"))
	if err != nil {
		return err
	}
	p.answer(conn)
	return nil
}

// answer serves a connection until it or the box ends.
func (p *initProcess) answer(conn net.Conn) {
	go func() { _ = p.server.Serve(context.Background(), conn) }()
}

// Check implements guest.Guard.
func (p *initProcess) Check(op string, dir *os.File, base string) (done func(), err error) {
	return p.broker.Check(op, dir, base)
}

// Rename implements guest.Guard.
func (p *initProcess) Rename(dir *os.File, base string, newDir *os.File, newBase string) error {
	return p.broker.Rename(dir, base, newDir, newBase)
}

func (p *initProcess) refusals() []paddock.Refusal {
	list := p.broker.Refusals()
	if p.names != nil {
		list = byTime(list, nameserver.Refusals(p.names.Asked()))
	}
	p.look()
	return p.reached.with(list)
}

// byTime joins two lists of refusals, oldest first.
func byTime(a, b []paddock.Refusal) []paddock.Refusal {
	list := slices.Concat(a, b)
	slices.SortStableFunc(list, func(x, y paddock.Refusal) int { return x.Time.Compare(y.Time) })
	return list
}

// serve opens the gate and accepts further connections until the host closes the control
// channel. Then the box ends.
func (p *initProcess) serve(report func(Report)) error {
	p.step = "run a first command"
	reserved := make(chan error)
	go func() { reserved <- sys.ReserveThreads(AgentThreads) }() // on a processor that is not waiting for the command
	if err := errors.Join(guest.First(p.spawn.start), <-reserved); err != nil {
		return err
	}
	if err := sys.InitSignals(); err != nil { // before there are commands
		return err
	}
	close(p.gate)
	if p.view != nil {
		go p.view.keep() // ends with the box
	}
	report(Report{Ready: true})
	saveMemory()
	// The host sends a descriptor for each connection; when it closes its end, the box
	// ends.
	for {
		data, fds, err := p.control.Receive()
		if err != nil || len(fds) == 0 {
			os.Exit(0) // as process 1 we end all other processes, too
		}
		conn, err := connOf(fds[0])
		if err != nil {
			continue
		}
		if len(data) == 1 && Op(data[0]) == OpHeld {
			go func() { // ends with the list
				defer conn.Close()
				_ = WriteChanges(conn, p.broker.Held()) // the host sees that the list is cut off
			}()
			continue
		}
		p.answer(conn)
	}
}

// saveMemory enables garbage collection after a delay. Until now it was off (GOGC=off), and
// a collection now would only delay the first commands.
func saveMemory() {
	time.AfterFunc(300*time.Millisecond, func() { debug.SetGCPercent(50) })
}

func connOf(f *os.File) (net.Conn, error) {
	defer f.Close()
	conn, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("connection: %w", err)
	}
	return conn, nil
}

// A spawner is the thread from which commands are started. Its restrictions are theirs,
// because a new process inherits from the thread that makes it.
type spawner struct {
	calls chan func()
	score *os.File
	own   []byte // the agent's own score
	pids  int    // processes and threads of commands, and AgentThreads
}

func newSpawner(score *os.File, pids int) *spawner {
	s := &spawner{calls: make(chan func()), score: score, pids: pids, own: make([]byte, 16)}
	n, err := score.ReadAt(s.own, 0)
	if err != nil && n == 0 {
		n = copy(s.own, "0")
	}
	s.own = s.own[:n]
	go s.run() // lives as long as the box
	return s
}

// run is the thread. It must not be the process's first one, because the kernel would take
// the restrictions of that one for the agent's, and let commands signal the agent.
func (s *spawner) run() {
	runtime.LockOSThread()
	if sys.Leader() {
		go s.run()
		select {} // so that another thread is used
	}
	for call := range s.calls {
		call()
	}
}

// do runs f on the spawner's thread.
func (s *spawner) do(f func() error) error {
	done := make(chan error)
	s.calls <- func() { done <- f() }
	return <-done
}

// start is guest.Options.StartProcess.
func (s *spawner) start(argv0 string, argv []string, attr *guest.ProcAttr) (pid int, err error) {
	err = s.do(func() error {
		// For lack of memory, commands must be killed before the agent. A process may
		// always raise its score and undo that.
		if _, err := s.score.WriteAt([]byte("500"), 0); err != nil {
			return err
		}
		// Commands may have fewer processes than the agent, which must always be able to
		// make a thread. The new process has its limit from its beginning. The agent's
		// limit stays unchanged, because its other threads may need one meanwhile.
		pid, err = sys.Spawn(argv0, argv, &sys.SpawnAttr{
			Dir: attr.Dir, Env: attr.Env, Files: attr.Files, Terminal: attr.Terminal, User: os.Getuid(), PIDs: s.pids,
		})
		if _, e := s.score.WriteAt(s.own, 0); e != nil && err == nil {
			err = e
		}
		return err
	})
	return pid, err
}
