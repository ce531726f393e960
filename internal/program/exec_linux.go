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
		if err == nil {
			carrier, err = sys.HighFile(carrier)
		}
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
	if err := Intact(f); err != nil {
		return err
	}
	return syscall.Exec(pathOf(f), argv, env)
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
	files := map[string]*os.File{}
	for name, fd := range list {
		sys.CloseOnExec(fd)
		path, err := sys.PathOf(fd)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errHanded, err)
		}
		f := os.NewFile(uintptr(fd), fileName(path))
		if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
			return nil, errHanded
		}
		files[name] = f
	}
	carrier, ok := files[carrierName]
	if !ok {
		return nil, errHanded
	}
	h := Handed{}
	for name, f := range files {
		if name == carrierName {
			continue
		}
		s := &Source{fresh: func() (*os.File, error) { return renew(pathOf(carrier), name) }}
		if err := s.take(f); err != nil {
			return nil, err
		}
		h[name] = Program{Name: name, source: s, carrier: pathOf(carrier)}
	}
	// The kernel names a process after the path that was executed, which is a number.
	_ = os.WriteFile("/proc/self/comm", []byte(carrierName), 0) // for people only
	return h, nil
}

// pathOf is a path that leads to an open file, as long as it is open.
func pathOf(f *os.File) string { return fmt.Sprintf("/proc/self/fd/%d", f.Fd()) }

// fileName is the name of a file that came as a descriptor. Memory has no path: its name says so to whoever asks for one.
func fileName(path string) string { return strings.TrimPrefix(path, "/memfd:") }
