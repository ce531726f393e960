package boxinit

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/nameserver"
	"github.com/paddock-sandbox/paddock/internal/guestinit"
	"github.com/paddock-sandbox/paddock/internal/seccomp"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// A GuestKernel is a kernel that a tier brings, on which commands run instead of the host's
// kernel. It is not a part of the sandbox's protection. It is confined by it, and as
// hostile as an attacker who takes it over.
type GuestKernel interface {
	// Start starts the kernel, and in it the agent (package guestinit).
	Start(c *Config, f GuestKernelFiles) error

	// Connect opens a new connection to the agent.
	Connect(ctx context.Context) (net.Conn, error)

	// Save writes everything that a box needs to be restored elsewhere. With stop nothing
	// runs afterwards, unless it failed. If the box exceeds the room, the error is
	// [paddock.Exhausted], and little more than the room is written, whatever the kernel
	// does.
	Save(files []*os.File, stop bool, room Room) error

	// Go undoes a Save with stop: the stopped processes continue.
	Go() error

	// Archive writes the private layer as a tar archive, with room as in Save.
	Archive(file *os.File, room Room) error

	// Wait waits for the kernel's end and returns its cause, if known.
	Wait() error

	// Processes returns the number of processes of Start that can change files of the host.
	// Each calls Enlist or EnlistOn before it does anything for the guest.
	Processes() int
}

// A Bounder is a GuestKernel that bounds and measures the memory of commands by itself,
// because the host's figures are those of the whole machine.
type Bounder interface {
	Bound(memory int64) error
	Measure() (kills, memory, peak int64, err error)
}

// GuestKernelFiles are the host's files for a guest kernel. They are closed when Start
// returns.
type GuestKernelFiles struct {
	// Seal is called when the kernel's processes have set themselves up, before the guest
	// runs or is restored. From then on they may only change what the guest may change, and this
	// process has no capability but one.
	Seal func() error

	// Link sends the host its end of the link, if the configuration requests a link.
	Link func(theirs *os.File) error

	// Watch makes the watcher of the host's files; see [HostWatch]. It is nil if no mount is to be watched.
	Watch func() (*HostWatch, error)

	Events *os.File   // receives the kernel's events on its processes; nil discards them
	Image  []*os.File // a saved box that is to be restored; nil means none

	Supplies *Files // all transmitted files, for names that only this guest kernel knows

	// Template receives a started kernel before it belongs to a box. Nil means that no
	// template is requested.
	Template *Template
}

// A Template receives the state of a kernel before it knows anything of its box, because
// boxes of others will continue from it. So it is saved before the kernel receives any data
// of the box. After that, nobody here can write to the template.
type Template struct {
	Files []*os.File // for Save
	Room  Room
	told  *os.File
}

// Close ends the writing. The host only uses a template that is reported as complete.
func (t *Template) Close(whole bool) {
	for _, f := range t.Files {
		f.Close()
	}
	if whole {
		_, _ = t.told.Write([]byte{1}) // a host that is gone needs no report
	}
	t.told.Close()
}

// runGuestKernel starts the guest kernel, and connects it with the host until it ends.
func (p *initProcess) runGuestKernel(came *Files, report func(Report)) error {
	k := p.config.GuestKernel
	if k == nil || len(k.Token) != guestinit.TokenSize {
		return fmt.Errorf("the configuration has no guest kernel: %w", paddock.Internal)
	}
	files := GuestKernelFiles{Link: p.giveLink, Watch: p.watchHost, Events: came.One(FileEvents), Supplies: came}
	var guard *guard
	files.Seal = func() error {
		if err := guard.complete(p.guestKernel.Processes()); err != nil {
			return err
		}
		p.broker.sealed.Store(true)
		// One capability is left: to read the arguments of the kernel's requests to the broker. With more, a
		// guest that takes the supervisor over while it starts could make the tree's mounts writable.
		return sys.KeepOnlyPtrace()
	}
	if written := came.One(FileWritten); written != nil {
		files.Template = &Template{Files: came.Of(FileTemplate), Room: k.Room, told: written}
	}
	p.step = "open the saved sandbox"
	for i := range k.SavedParts {
		f, err := os.Open(SavedPart(i))
		if err != nil {
			return fmt.Errorf("part %d of the saved sandbox: %w", i, err)
		}
		came.Add(FileImage, f)
	}
	files.Image = came.Of(FileImage)
	if err := p.confineGuestKernel(); err != nil {
		return err
	}
	p.step = "start the kernel"
	var err error
	if guard, err = p.listen(); err != nil {
		return err
	}
	if err := p.guestKernel.Start(&p.config, files); err != nil {
		return err
	}
	if !p.broker.sealed.Load() {
		return fmt.Errorf("the kernel was started without its guard: %w", paddock.Internal)
	}
	came.Close()
	p.step = "run a first command"
	if _, err := p.tell(guestinit.Settle); err != nil {
		return err
	}
	if err := sys.NotDumpable(); err != nil {
		return err
	}
	go func() {
		if err := p.guestKernel.Wait(); err != nil {
			report(Report{Error: Words(err.Error(), MaxWords), Kind: paddock.KindOf(err), Step: "run the kernel"})
		}
		os.Exit(GuestKernelEnded)
	}()
	conn, err := connOf(os.NewFile(ConnFD, "connection"))
	if err != nil {
		return err
	}
	go p.join(conn)
	if err := sys.InitSignals(); err != nil {
		return err
	}
	report(Report{Ready: true})
	saveMemory()
	for {
		data, fds, err := p.control.Receive()
		if err != nil || len(data) == 0 || len(fds) == 0 {
			os.Exit(0) // as process 1 we end all other processes, too
		}
		go p.carryOut(Op(data[0]), data[1:], fds)
	}
}

// confineGuestKernel installs the restrictions of the kernel that can already apply to its
// supervisor.
func (p *initProcess) confineGuestKernel() error {
	p.step = "filter system calls"
	base, err := seccomp.GuestKernel()
	if err != nil {
		return err
	}
	if err := sys.SeccompAll(base); err != nil { // with no_new_privs
		return err
	}
	if p.broker, err = newBroker(&p.config); err != nil {
		return err
	}
	if err := p.broker.keepTops(p.config.Trees); err != nil {
		return err
	}
	p.broker.fail = p.brokerFailed
	p.broker.ledger.file = p.ledger
	return p.broker.observe(p.witness)
}

// tell sends the host's decisions to the agent, and returns its answer. With
// guestinit.Settle the answer means that a command has run.
func (p *initProcess) tell(what byte) (guestinit.Answer, error) {
	var answer guestinit.Answer
	ctx, cancel := context.WithTimeout(context.Background(), connectTime)
	defer cancel()
	conn, err := p.guestKernel.Connect(ctx)
	if err != nil {
		return answer, fmt.Errorf("connect to the agent: %w", err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(answerTime))
	p.mu.Lock()
	c := p.config
	p.mu.Unlock()
	s := guestinit.Settings{PIDs: c.PIDs}
	if what == guestinit.Settle {
		s = guestinit.Settings{User: c.User, Env: c.Env, Dir: c.Dir, Files: c.Files, PIDs: c.PIDs}
	}
	form := guestinit.Form(p.config.GuestKernel.Machine != nil)
	said := bytes.NewBuffer(p.greeting(what))
	if err := form.Write(said, &s); err != nil {
		return answer, err
	}
	if _, err := conn.Write(said.Bytes()); err != nil {
		return answer, err
	}
	if err := form.Read(conn, &answer); err != nil {
		return answer, fmt.Errorf("the agent's answer: %w", err)
	}
	if answer.Error != "" {
		return answer, fmt.Errorf("%s: %w", Words(answer.Error, MaxWords/8), answer.Kind)
	}
	return answer, nil
}

// greeting returns the first bytes of a connection to the agent.
func (p *initProcess) greeting(what byte) []byte {
	return append([]byte{what}, p.config.GuestKernel.Token...)
}

// answerTime bounds answers of the agent that should be fast.
const answerTime = 20 * time.Second

// connectTime bounds how long an agent may accept no connection. It is longer than a kernel
// stops while it is saved.
const connectTime = 2 * time.Minute

// carryOut executes a request of the host. The first descriptor is for the answer.
func (p *initProcess) carryOut(op Op, arg []byte, fds []*os.File) {
	defer func() {
		for _, f := range fds[1:] {
			f.Close()
		}
	}()
	conn, err := connOf(fds[0])
	if err != nil {
		return
	}
	if op == OpConnect {
		p.join(conn)
		return
	}
	defer conn.Close()
	switch op {
	case OpHeld:
		_ = WriteChanges(conn, p.broker.Held()) // as in a box without a kernel of its own
		return
	case OpInspect:
		i := Inspection{Refusals: p.broker.Refusals(), PIDs: -1}
		if a, err := p.tell(guestinit.Inspect); err == nil {
			i.PIDs = a.PIDs
			if !p.config.Link { // otherwise the gateway answers, and the agent's list says nothing
				i.Refusals = byTime(i.Refusals, nameserver.Refusals(a.Asked))
			}
			p.mu.Lock()
			most := p.config.PIDs
			p.mu.Unlock()
			if a.Crowded {
				p.reached.add(processesReached(most))
			}
			if a.Full {
				p.reached.add(diskReached(p.config.GuestKernel.Disk))
			}
			i.Refusals = p.reached.with(i.Refusals)
		}
		if m, ok := p.guestKernel.(Bounder); ok {
			i.Kills, i.Memory, i.Peak, _ = m.Measure() // missing figures are zero
		}
		send(conn, i)
	case OpSave, OpStop:
		p.saving.Lock()
		err = p.guestKernel.Save(fds[1:], op == OpStop, roomOf(arg))
		p.saving.Unlock()
	case OpGo:
		p.saving.Lock() // wait for a running save
		err = p.guestKernel.Go()
		p.saving.Unlock()
	case OpFiles:
		if len(fds) == 2 {
			err = p.guestKernel.Archive(fds[1], roomOf(arg))
		}
	case OpBound:
		if len(arg) == 4 {
			p.mu.Lock()
			p.config.PIDs = int(binary.LittleEndian.Uint32(arg))
			p.mu.Unlock()
			_, err = p.tell(guestinit.Bound)
		}
	case OpMemory:
		if m, ok := p.guestKernel.(Bounder); ok && len(arg) == 8 {
			err = m.Bound(int64(binary.LittleEndian.Uint64(arg)))
		}
	default:
		err = fmt.Errorf("operation %d: %w", op, paddock.Unsupported)
	}
	if op == OpInspect {
		return
	}
	r := Report{Ready: true}
	if err != nil {
		r = Report{Error: Words(err.Error(), MaxWords), Kind: paddock.KindOf(err)}
	}
	send(conn, r)
}

// send answers the host; a host that is gone needs no answer.
func send(conn net.Conn, v any) {
	if data, err := json.Marshal(v); err == nil {
		_, _ = conn.Write(data)
	}
}

// join connects a connection of the host with the agent, until one side ends.
func (p *initProcess) join(host net.Conn) {
	defer host.Close()
	ctx, cancel := context.WithTimeout(context.Background(), connectTime)
	agent, err := p.guestKernel.Connect(ctx)
	cancel()
	if err != nil {
		return
	}
	defer agent.Close()
	if _, err := agent.Write(p.greeting(guestinit.Serve)); err != nil {
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { carry(agent, host) })
	carry(host, agent)
	wg.Wait()
}

// carry copies until the end, and then ends both connections.
func carry(to, from net.Conn) {
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			if _, e := to.Write(buf[:n]); e != nil {
				err = errors.Join(err, e)
			}
		}
		if err != nil {
			_ = to.Close() // this also ends the other direction
			_ = from.Close()
			return
		}
	}
}
