package guest

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/sudo"
	"github.com/paddock-sandbox/paddock/internal/outputring"
)

// Bounds of what commands may ask by sudo at once, and of how long one may take to
// say what it asks.
const (
	maxSudo     = 64
	sudoPatient = 10 * time.Second
)

// sudoPlaces is how many may be asked at once by an agent that may have so many files
// open: while a request is read it holds a connection and three more, and most are to be
// left for what the host asks, which has processes found and killed.
func sudoPlaces(files uint64) int {
	const each, share = 4, 4
	return int(max(min(files/(each*share), maxSudo), 1))
}

// Sudo starts what commands ask for on a socket of the sandbox, as any user that
// a command of the host's may have, until the agent ends: less than that nobody is
// refused, and more nobody gets. What is started ends with who asked for it, and
// so with all that ends that.
func (s *Server) Sudo(l *net.UnixListener) {
	// A request can arrive before a connection was accepted and asked for it, and its credentials would be missing.
	_ = sudo.WantCredentials(l) // each connection is asked for it too
	s.wg.Go(func() {
		<-s.stop
		l.Close()
	})
	s.wg.Go(func() {
		var files syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &files); err != nil {
			files.Cur = 0 // which is one place
		}
		room := make(chan struct{}, sudoPlaces(files.Cur))
		for {
			conn, err := l.AcceptUnix()
			switch {
			case errors.Is(err, net.ErrClosed):
				return
			case err != nil: // for want of a descriptor
				select {
				case <-time.After(10 * time.Millisecond):
				case <-s.stop:
					return
				}
				continue
			}
			select {
			case room <- struct{}{}:
				s.wg.Go(func() {
					defer func() { <-room }()
					s.answerSudo(conn)
				})
			default:
				conn.Close()
			}
		}
	})
}

// answerSudo carries one request out, and says how the command ended.
func (s *Server) answerSudo(conn *net.UnixConn) {
	gone := make(chan struct{})
	defer close(gone)
	s.wg.Go(func() {
		select {
		case <-s.stop:
		case <-gone:
		}
		conn.Close()
	})
	_ = conn.SetDeadline(time.Now().Add(sudoPatient))
	answer := sudo.Answer{}
	p, err := s.beginSudo(conn)
	_ = conn.SetDeadline(time.Time{})
	if err != nil {
		answer.Error = sudoWords(err)
	} else {
		s.wg.Go(func() { p.obey(conn) })
		<-p.ended
		e := p.exited(0)
		answer.Code, answer.Signal = int(e.GetCode()), int(e.GetSignal())
	}
	data, err := sudo.Encode(answer)
	if err != nil {
		return
	}
	_ = conn.SetWriteDeadline(time.Now().Add(sudoPatient))
	_, _ = conn.Write(data) // who does not hear it has ended
}

// sudoWords says why there is no command, as sudo does.
func sudoWords(err error) string {
	var start *paddock.StartError
	if errors.As(err, &start) {
		if start.Code == 127 {
			return start.Path + ": command not found"
		}
		return fmt.Sprintf("unable to execute %s: %s", start.Path, start.Err)
	}
	return err.Error()
}

// beginSudo reads a request and starts what it asks for.
func (s *Server) beginSudo(conn *net.UnixConn) (*process, error) {
	head, files, cred, err := receiveSudo(conn)
	defer func() { closeAll(files) }()
	if err != nil {
		return nil, err
	}
	n, err := sudo.Length(head, sudo.MaxRequest)
	if err != nil {
		return nil, err
	}
	data := make([]byte, n)
	if _, err := io.ReadFull(conn, data); err != nil {
		return nil, fmt.Errorf("the request is cut short: %w", paddock.Invalid)
	}
	r, err := sudo.Decode(data)
	if err != nil {
		return nil, err
	}
	c, err := s.sudoCommand(r, cred)
	if err != nil {
		return nil, err
	}
	argv := c.args
	c.args = append([]string{c.program}, argv[1:]...)
	path, err := lookup(c.command)
	if err != nil {
		return nil, err
	}
	c.args = argv
	return s.lend(c.command, path, files)
}

// A sudoCommand is a command with the program to look for, which its first argument
// need not name.
type sudoCommand struct {
	command
	program string
}

// sudoCommand says what a request means in this sandbox.
func (s *Server) sudoCommand(r *sudo.Request, cred *syscall.Ucred) (c sudoCommand, err error) {
	name := string(r.User)
	if name == "" {
		name = "root"
	}
	as, err := s.account(name)
	if err != nil {
		return c, err
	}
	caller := sudo.Account{Name: fmt.Sprint(cred.Uid), UID: int(cred.Uid), GID: int(cred.Gid)}
	if u, err := s.account(caller.Name); err == nil {
		caller.Name = u.Name
	}
	var env map[string]string
	c.program, c.args, env, c.dir = r.Command(sudo.Account(as), caller)
	if r.Login && len(r.Dir) == 0 && access(c.dir) != nil { // not every user has a home
		c.dir = "/"
	}
	c.path = sudo.SecurePath
	for k, v := range env {
		c.env = append(c.env, k+"="+v)
	}
	if as.UID != s.o.User.UID {
		c.user = &as
	}
	if r.Terminal {
		c.terminal = &paddock.Size{}
	}
	return c, nil
}

// account gives a user of the sandbox by name or number.
func (s *Server) account(name string) (User, error) {
	if name == s.o.User.Name || name == fmt.Sprint(s.o.User.UID) {
		return s.o.User, nil
	}
	u, err := s.another(name)
	if errors.Is(err, paddock.NotFound) {
		err = fmt.Errorf("unknown user %s: %w", strings.ToValidUTF8(name, "?"), paddock.NotFound)
	}
	if err != nil {
		return User{}, err
	}
	return *u, nil
}

// receiveSudo takes the head of a request with what comes along: three descriptors,
// and who asks, as the kernel knows them.
func receiveSudo(conn *net.UnixConn) (head [sudo.Head]byte, files []*os.File, cred *syscall.Ucred, err error) {
	wrong := fmt.Errorf("a request comes with its streams and who asks: %w", paddock.Invalid)
	if err := sudo.WantCredentials(conn); err != nil {
		return head, nil, nil, err
	}
	const streams = 3
	oob := make([]byte, syscall.CmsgSpace(streams*4)+syscall.CmsgSpace(syscall.SizeofUcred))
	n, oobn, flags, _, err := conn.ReadMsgUnix(head[:], oob)
	if err != nil {
		return head, nil, nil, err
	}
	messages, err := syscall.ParseSocketControlMessage(oob[:oobn])
	if err != nil {
		return head, nil, nil, wrong
	}
	for _, m := range messages {
		if fds, err := syscall.ParseUnixRights(&m); err == nil {
			for _, fd := range fds {
				files = append(files, os.NewFile(uintptr(fd), "stream"))
			}
		} else if u, err := syscall.ParseUnixCredentials(&m); err == nil {
			cred = u
		}
	}
	if n != len(head) || len(files) != streams || cred == nil || cred.Pid <= 0 || flags&(syscall.MSG_CTRUNC|syscall.MSG_TRUNC) != 0 {
		return head, files, nil, wrong
	}
	return head, files, cred, nil
}

// lend starts a command with the streams of another one. It is not listed: to the
// host it is a part of that.
func (s *Server) lend(c command, path string, files []*os.File) (*process, error) {
	for wait := time.Millisecond; ; wait *= 2 {
		p := &process{s: s, cmd: c, hidden: true, ended: make(chan struct{}), out: outputring.New(s.o.Kept)}
		err := s.launch(p, path, files)
		if err == nil {
			return p, nil
		}
		if !errors.Is(err, syscall.ETXTBSY) {
			return nil, err
		}
		if wait > busyTime/2 {
			return nil, explain(c, path, err)
		}
		select {
		case <-time.After(wait):
		case <-s.stop:
			return nil, errEnds
		}
	}
}

// obey passes on the signals that come for the process, and kills all of it where
// who asked for it has gone.
func (p *process) obey(conn *net.UnixConn) {
	one := make([]byte, 1)
	for {
		if _, err := conn.Read(one); err != nil {
			p.kill()
			return
		}
		if sig := one[0]; sig >= 1 && sig <= 64 {
			_ = p.signal(syscall.Signal(sig)) // which may have ended
		}
	}
}
