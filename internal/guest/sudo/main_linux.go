package sudo

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Main runs the command sudo and does not return.
func Main() {
	o, err := parse(os.Args[1:])
	if err == nil {
		var answer Answer
		if answer, err = o.do(); err == nil {
			end(answer)
		}
	}
	switch {
	case errors.Is(err, errUsage):
		fmt.Fprint(os.Stderr, usage)
	default:
		fmt.Fprintln(os.Stderr, "sudo:", err)
	}
	os.Exit(1)
}

// end ends as the command did.
func end(a Answer) {
	if a.Error != "" {
		fmt.Fprintln(os.Stderr, "sudo:", strings.TrimSpace(a.Error))
		os.Exit(1)
	}
	if sig := syscall.Signal(a.Signal); a.Signal > 0 && a.Signal < 65 {
		_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &syscall.Rlimit{})
		signal.Reset(sig)
		_ = syscall.Kill(os.Getpid(), sig)
		<-time.After(time.Second) // it comes at once, or is one that ends nothing
		os.Exit(128 + a.Signal)
	}
	os.Exit(a.Code)
}

func (o *options) do() (Answer, error) {
	switch o.mode {
	case showHelp:
		fmt.Print("sudo - execute a command as another user of this sandbox\n\n", usage)
		return Answer{}, nil
	case showVersion:
		fmt.Println("Sudo of a Paddock sandbox: no password, no set-id bit; root of the sandbox has no capabilities")
		return Answer{}, nil
	case nothing:
		return Answer{}, nil
	case list:
		fmt.Print("User ", os.Getuid(), " may run the following commands in this sandbox:\n    (ALL) NOPASSWD: ALL\n")
		return Answer{}, nil
	case validate:
		o.args, o.shell, o.login = []string{"/bin/true"}, false, false
	}
	dir, err := os.Getwd()
	if err != nil {
		dir = "/"
	}
	conn, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: Address, Net: "unix"})
	if err != nil {
		return Answer{}, errors.New("this sandbox was not made with sudo, or has too much of it under way")
	}
	if err := WantCredentials(conn); err != nil { // the sentry's accepted sockets do not inherit it
		return Answer{}, err
	}
	c := call{conn: conn, request: o.request(os.Environ(), dir), files: []*os.File{os.Stdin, os.Stdout, os.Stderr}}
	return c.run()
}

// WantCredentials has the kernel add who sends to what passes a socket: one that sends, receives or, on Linux, listens.
func WantCredentials(c syscall.Conn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var failed error
	err = raw.Control(func(fd uintptr) { failed = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_PASSCRED, 1) })
	return errors.Join(err, failed)
}

// A call is one of the agent.
type call struct {
	conn    *net.UnixConn
	request *Request
	files   []*os.File

	master *os.File // of the command's terminal; nil is none
	output sync.WaitGroup
}

func (c *call) run() (a Answer, err error) {
	defer c.conn.Close()
	// A signal that comes early is passed on, too.
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGUSR1, syscall.SIGUSR2,
		syscall.SIGALRM, syscall.SIGCONT, syscall.SIGWINCH)
	restore, err := c.terminal()
	if err != nil {
		return a, err
	}
	defer restore()
	if err := c.send(); err != nil {
		return a, err
	}
	for _, f := range c.files {
		if f != os.Stdin && f != os.Stdout && f != os.Stderr {
			f.Close()
		}
	}
	go c.pass(signals)
	a, err = ReadAnswer(c.conn)
	if err != nil {
		return a, errors.New("the sandbox ended the command without a word")
	}
	if c.master != nil {
		// What still holds the terminal goes on without being heard.
		_ = c.master.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		c.output.Wait()
	}
	return a, nil
}

// pass hands signals on.
func (c *call) pass(signals <-chan os.Signal) {
	for s := range signals {
		number, ok := s.(syscall.Signal)
		switch {
		case !ok:
		case number == syscall.SIGWINCH:
			if c.master != nil {
				_ = sys.ResizeLike(c.master, os.Stdin)
			}
		default:
			if _, err := c.conn.Write([]byte{byte(number)}); err != nil {
				return // it has ended
			}
		}
	}
}

// send says the request, with the streams and who this is.
func (c *call) send() error {
	data, err := Encode(c.request)
	if err != nil {
		return err
	}
	if len(data)-Head > MaxRequest {
		return errors.New("the arguments and variables are too long")
	}
	fds := make([]int, len(c.files))
	for i, f := range c.files {
		fds[i] = int(f.Fd())
	}
	rights := syscall.UnixRights(fds...)
	who := syscall.UnixCredentials(&syscall.Ucred{Pid: int32(os.Getpid()), Uid: uint32(os.Getuid()), Gid: uint32(os.Getgid())})
	if _, _, err := c.conn.WriteMsgUnix(data[:Head], append(rights, who...), nil); err != nil {
		return fmt.Errorf("ask for the command: %w", err)
	}
	if _, err := c.conn.Write(data[Head:]); err != nil {
		return fmt.Errorf("ask for the command: %w", err)
	}
	return nil
}

// terminal gives the command a terminal of its own where this one has one: another
// session cannot have the same, and what ends lines, and ends commands, is its
// terminal's to do.
func (c *call) terminal() (restore func(), err error) {
	if !sys.InForeground(os.Stdin) {
		return func() {}, nil
	}
	master, slave, err := sys.TerminalLike(os.Stdin)
	if err != nil {
		return nil, err
	}
	out := os.Stdin // which is open for both where it is a terminal
	for i, f := range c.files {
		if sys.IsTerminal(f) {
			c.files[i] = slave
			if i > 0 && out == os.Stdin {
				out = f
			}
		}
	}
	if restore, err = sys.RawTerminal(os.Stdin); err != nil {
		return nil, err
	}
	c.master, c.request.Terminal = master, true
	go func() { _, _ = io.Copy(master, os.Stdin) }() // until this process ends
	c.output.Go(func() { _, _ = io.Copy(out, master) })
	return restore, nil
}
