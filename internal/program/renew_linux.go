package program

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// renewArgv0 is the name by which the installed program is executed to open a program that it carries.
const renewArgv0 = "paddock-programs"

// renewTime bounds the wait for a program. To unpack the largest takes a second.
const renewTime = time.Minute

// renewFD is the descriptor of the channel to who asks.
const renewFD = 3

// Renew is the process that opens a program anew for one to which it was handed on, if this process was started as
// that. Otherwise it returns false.
func Renew(cache string, programs func() []Program) bool {
	if len(os.Args) != 2 || os.Args[0] != renewArgv0 {
		return false
	}
	c, err := sys.NewChannel(renewFD)
	if err != nil {
		return true // nobody to report to
	}
	defer func() { _ = c.Close() }()
	err = fmt.Errorf("there is no program %q: %w", os.Args[1], paddock.Internal)
	for _, p := range programs() {
		if p.Name != os.Args[1] {
			continue
		}
		var f *os.File
		if f, err = p.Open(cache); err == nil {
			_ = c.Send(nil, f) // who asks is told by the end of the channel
			f.Close()
			return true
		}
	}
	_ = c.Send([]byte(err.Error())) // likewise
	return true
}

// renew has the program at a path open a program that it carries.
func renew(carrier, name string) (*os.File, error) {
	mine, theirs, err := sys.NewChannelPair()
	if err != nil {
		return nil, err
	}
	defer func() { _ = mine.Close() }()
	defer theirs.Close()
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer null.Close()
	p, err := os.StartProcess(carrier, []string{renewArgv0, name}, &os.ProcAttr{Dir: "/", Env: os.Environ(), Files: []*os.File{null, null, null, renewFD: theirs}})
	if err != nil {
		return nil, fmt.Errorf("make the program %s anew: %w", name, err)
	}
	theirs.Close()
	err = mine.Within(renewTime)
	var says []byte
	var files []*os.File
	if err == nil {
		says, files, err = mine.Receive()
	}
	_ = p.Kill() // it has answered, or will not
	_, _ = p.Wait()
	if err == nil && len(files) == 1 {
		path, err := sys.PathOf(int(files[0].Fd()))
		if err != nil {
			return nil, errors.Join(err, files[0].Close())
		}
		return sys.HighFile(sys.Named(files[0], fileName(path)))
	}
	for _, f := range files {
		f.Close()
	}
	if err == nil {
		err = errors.New(string(says))
	}
	return nil, fmt.Errorf("make the program %s anew: %w", name, err)
}
