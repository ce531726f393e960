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
	"github.com/paddock-sandbox/paddock/internal/guestinit"
	"github.com/paddock-sandbox/paddock/internal/kernel"
	"github.com/paddock-sandbox/paddock/internal/seccomp"
)

// A Kernel is one in software, on which commands run in place of the host's.
// It is not a part of this program's walls: it is behind them, as hostile as
// whoever takes it over.
type Kernel interface {
	// Start starts it, and in it the agent (package inside).
	Start(c *Config, f KernelFiles) error

	// Connect gives a new connection to the agent.
	Connect(ctx context.Context) (net.Conn, error)

	// Save writes all that a box needs to go on elsewhere. With stop nothing
	// runs afterwards, unless it failed. More than there is room for is
	// [paddock.Exhausted], and hardly more is written, whatever the kernel does.
	Save(files []*os.File, stop bool, room Room) error

	// Go undoes a Save with stop. What runs goes on.
	Go() error

	// Archive writes the private layer, as a tar archive, with room as in Save.
	Archive(file *os.File, room Room) error

	// Wait waits for the kernel's end, and says why it came, where that is known.
	Wait() error

	// Processes is how many processes Start starts that can change files of
	// the host's. Each calls Enlist, or EnlistOn, before it does anything for
	// the guest.
	Processes() int
}

// A Bounder is a Kernel that bounds and measures the memory of commands by itself:
// the host's numbers are those of the machine that it runs in.
type Bounder interface {
	Bound(memory int64) error
	Measure() (kills, memory, peak int64, err error)
}

// KernelFiles are what a kernel gets of the host. They are closed when Start
// returns.
type KernelFiles struct {
	// Seal is called when the kernel's processes have set themselves up, and
	// before anything of the guest's runs, or goes on: from then on they change
	// nothing but what is the guest's to change.
	Seal func() error

	// Link gives the host its end of the link, where the configuration asks for
	// one.
	Link func(theirs *os.File) error

	Events *os.File   // takes what the kernel tells of its processes; nil is nobody
	Image  []*os.File // a saved box that is to go on; nil is none

	Supplies []*os.File // what KernelConfig.Machine is about

	// Template takes a kernel that is started, before it is anybody's; nil is that
	// nobody asks for it.
	Template *Template
}

// TemplateFiles is how many descriptors a Template is made of: as many as Save takes
// of a machine, and one by which the host hears that they are written.
const TemplateFiles = 4

// A Template takes a kernel as it is before it knows anything of its box: others are
// to go on from it that are made for somebody else. So it is saved before anything is
// told to what runs in it, and nobody here can write to it once anything was.
type Template struct {
	Files []*os.File // for Save
	Room  Room
	told  *os.File
}

// Close ends the writing. The host takes what was written for a template only where
// it hears that it is whole.
func (t *Template) Close(whole bool) {
	for _, f := range t.Files {
		f.Close()
	}
	if whole {
		_, _ = t.told.Write([]byte{1}) // a host that went away needs none
	}
	t.told.Close()
}

// runKernel is what a box does with a kernel of its own: it stands between that
// and the host for as long as it lives.
func (b *box) runKernel(fds []*os.File, report func(Report)) error {
	k := b.config.Kernel
	if k == nil || max(k.Image, k.Events, k.Supplies+k.Supplied-1) > len(fds) || k.Events < 0 || len(k.Token) != guestinit.TokenSize ||
		k.Template > 0 && k.Template-1+TemplateFiles > len(fds) {
		return fmt.Errorf("%d descriptors do not make a kernel: %w", len(fds), paddock.Internal)
	}
	files := KernelFiles{Link: b.giveLink}
	if k.Events > 0 {
		files.Events = fds[k.Events-1]
	}
	var guard *guard
	files.Seal = func() error {
		if err := guard.complete(b.kernel.Processes()); err != nil {
			return err
		}
		b.broker.sealed.Store(true)
		return nil
	}
	if k.Image > 0 {
		files.Image = fds[k.Image-1:]
	}
	if k.Supplied > 0 {
		files.Supplies = fds[k.Supplies-1 : k.Supplies-1+k.Supplied]
	}
	if k.Template > 0 {
		t := fds[k.Template-1 : k.Template-1+TemplateFiles]
		files.Template = &Template{Files: t[:TemplateFiles-1], Room: k.Room, told: t[TemplateFiles-1]}
	}
	if err := b.confineKernel(); err != nil {
		return err
	}
	b.step = "start the kernel"
	var err error
	if guard, err = b.listen(); err != nil {
		return err
	}
	if err := b.kernel.Start(&b.config, files); err != nil {
		return err
	}
	if !b.broker.sealed.Load() {
		return fmt.Errorf("the kernel was started without its guard: %w", paddock.Internal)
	}
	for _, f := range fds {
		f.Close()
	}
	b.step = "run a first command"
	if _, err := b.tell(guestinit.Settle); err != nil {
		return err
	}
	b.step = "drop capabilities"
	// One is left: to read what the kernel asks the broker for.
	if err := errors.Join(kernel.KeepOnlyPtrace(), kernel.NotDumpable()); err != nil {
		return err
	}
	go func() {
		if err := b.kernel.Wait(); err != nil {
			report(Report{Error: Words(err.Error(), MaxWords), Kind: paddock.KindOf(err), Step: "run the kernel"})
		}
		os.Exit(KernelEnded)
	}()
	conn, err := connOf(os.NewFile(ConnFD, "connection"))
	if err != nil {
		return err
	}
	go b.join(conn)
	report(Report{Ready: true})
	kernel.KeepSignals()
	saveMemory()
	for {
		data, fds, err := b.control.Receive()
		if err != nil || len(data) == 0 || len(fds) == 0 {
			os.Exit(0) // as process 1 we take everything with us
		}
		go b.carryOut(Op(data[0]), data[1:], fds)
	}
}

// confineKernel puts up the walls around the kernel, and what of them can stand
// already around its starter.
func (b *box) confineKernel() error {
	b.step = "filter system calls"
	base, err := seccomp.Kernel()
	if err != nil {
		return err
	}
	if err := kernel.SeccompAll(base); err != nil { // with no_new_privs
		return err
	}
	b.broker, err = newBroker(&b.config)
	return err
}

// tell tells the agent what the host has decided, and gives its answer: with
// guestinit.Settle, when a command has run.
func (b *box) tell(what byte) (guestinit.Answer, error) {
	var answer guestinit.Answer
	ctx, cancel := context.WithTimeout(context.Background(), connectTime)
	defer cancel()
	conn, err := b.kernel.Connect(ctx)
	if err != nil {
		return answer, fmt.Errorf("connect to the agent: %w", err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(answerTime))
	b.mu.Lock()
	c := b.config
	b.mu.Unlock()
	s := guestinit.Settings{PIDs: c.PIDs}
	if what == guestinit.Settle {
		s = guestinit.Settings{User: c.User, Env: c.Env, Dir: c.Dir, Files: c.Files, PIDs: c.PIDs}
	}
	form := guestinit.Form(b.config.Kernel.Machine != nil)
	said := bytes.NewBuffer(b.greeting(what))
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

// greeting begins a connection to the agent.
func (b *box) greeting(what byte) []byte {
	return append([]byte{what}, b.config.Kernel.Token...)
}

// answerTime bounds what the agent has no reason to take long for.
const answerTime = 20 * time.Second

// connectTime bounds how long an agent may take no connection: longer than a kernel
// is at rest while it is saved.
const connectTime = 2 * time.Minute

// carryOut does what the host asks. The first descriptor is for the answer.
func (b *box) carryOut(op Op, arg []byte, fds []*os.File) {
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
		b.join(conn)
		return
	}
	defer conn.Close()
	switch op {
	case OpInspect:
		i := Inspection{Refusals: b.broker.Refusals(), PIDs: -1}
		if a, err := b.tell(guestinit.Inspect); err == nil {
			i.PIDs = a.PIDs
		}
		if m, ok := b.kernel.(Bounder); ok {
			i.Kills, i.Memory, i.Peak, _ = m.Measure() // what it does not tell is none
		}
		send(conn, i)
	case OpSave, OpStop:
		b.saving.Lock()
		err = b.kernel.Save(fds[1:], op == OpStop, roomOf(arg))
		b.saving.Unlock()
	case OpGo:
		b.saving.Lock() // until what is being saved is
		err = b.kernel.Go()
		b.saving.Unlock()
	case OpFiles:
		if len(fds) == 2 {
			err = b.kernel.Archive(fds[1], roomOf(arg))
		}
	case OpBound:
		if len(arg) == 4 {
			b.mu.Lock()
			b.config.PIDs = int(binary.LittleEndian.Uint32(arg))
			b.mu.Unlock()
			_, err = b.tell(guestinit.Bound)
		}
	case OpMemory:
		if m, ok := b.kernel.(Bounder); ok && len(arg) == 8 {
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

// send answers a host; one that went away needs none.
func send(conn net.Conn, v any) {
	if data, err := json.Marshal(v); err == nil {
		_, _ = conn.Write(data)
	}
}

// join carries a connection of the host's to the agent, until one side ends.
func (b *box) join(host net.Conn) {
	defer host.Close()
	ctx, cancel := context.WithTimeout(context.Background(), connectTime)
	agent, err := b.kernel.Connect(ctx)
	cancel()
	if err != nil {
		return
	}
	defer agent.Close()
	if _, err := agent.Write(b.greeting(guestinit.Serve)); err != nil {
		return
	}
	var wg sync.WaitGroup
	wg.Go(func() { carry(agent, host) })
	carry(host, agent)
	wg.Wait()
}

// carry copies until the end, and ends both.
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
			_ = to.Close() // the other direction then ends too
			_ = from.Close()
			return
		}
	}
}
