package program

import (
	"fmt"
	"os"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Exec replaces the calling process by the program, and returns only where it
// cannot. Process number, terminal, descriptors and what was ignored of signals
// stay as they are. The program is handed the others, and the file that carries
// them all: see [Received].
func (p Program) Exec(cache string, argv, environ []string, others ...Program) error {
	f, err := p.Open(cache)
	if err != nil {
		return fmt.Errorf("the program %s: %w", p.Name, err)
	}
	defer f.Close()
	var handed []string
	hand := func(name string, f *os.File, err error) error {
		if err != nil {
			return fmt.Errorf("the program %s: %w", name, err)
		}
		handed = append(handed, fmt.Sprintf("%s:%d", name, f.Fd()))
		return sys.OpenAcrossExec(int(f.Fd()))
	}
	if len(others) > 0 {
		carrier, err := os.Open("/proc/self/exe")
		if err := hand(carrierName, carrier, err); err != nil {
			return err
		}
		defer carrier.Close()
	}
	for _, o := range others {
		if o.absent {
			continue // who asks for it is told then
		}
		f, err := o.Open(cache)
		if err := hand(o.Name, f, err); err != nil {
			return err
		}
		defer f.Close()
	}
	env := make([]string, 0, len(environ)+1)
	for _, v := range environ {
		if !strings.HasPrefix(v, handedVariable+"=") {
			env = append(env, v)
		}
	}
	if len(handed) > 0 {
		env = append(env, handedVariable+"="+strings.Join(handed, ","))
	}
	return syscall.Exec(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), argv, env) //nolint:gosec // the file was checked, and the arguments are the caller's own
}

// Received gives the programs that this process was handed, and keeps them from
// what it starts. It is called once, before anything else is done: until then their
// descriptors are only numbers. What says so is the environment of the caller, who
// executes whatever they like; the programs were checked by who handed them on.
func Received() (Handed, error) {
	text, ok := os.LookupEnv(handedVariable)
	if !ok {
		return Handed{}, nil
	}
	if err := os.Unsetenv(handedVariable); err != nil {
		return nil, err
	}
	list, err := parseHanded(text)
	if err != nil {
		return nil, err
	}
	if _, ok := list[carrierName]; !ok {
		return nil, errHanded
	}
	h := Handed{}
	for name, fd := range list {
		link, err := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errHanded, err)
		}
		sys.CloseOnExec(fd)
		// Memory has no path: its name says so to whoever asks for one.
		f := os.NewFile(uintptr(fd), strings.TrimPrefix(link, "/memfd:"))
		if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
			return nil, errHanded
		}
		h[name] = Program{Name: name, file: f, carrier: fmt.Sprintf("/proc/self/fd/%d", list[carrierName])}
	}
	// The kernel names a process after the path that was executed, which is a number.
	_ = os.WriteFile("/proc/self/comm", []byte(carrierName), 0) // for people only
	return h, nil
}
