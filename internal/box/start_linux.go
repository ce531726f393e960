package box

import (
	"net"
	"os"
	"slices"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/cgroup"
	"github.com/paddock-sandbox/paddock/internal/egress/owner"
	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// A start is what it takes to make a box.
type start struct {
	name     string
	argv0    string
	root     paddock.Root   // as the spec has it
	user     string         // likewise
	policy   paddock.Policy // likewise, of the network only the mode
	layout   *layout
	limits   paddock.Limits
	gateway  *owner.Gateway // the way out; nil is none
	out      *os.File       // its program; nil without one
	exe      *os.File       // the program of the box's init
	agent    *os.File       // what a kernel of the box's own executes; nil without one
	image    []*os.File     // a saved box that is to go on; nil is none
	supplies []*os.File     // what a machine of the box's own is made with; nil is none
	template []*os.File     // takes what the machine is before it is the box's; nil is that nobody asks
	kernel   *Kernel        // nil is the host's
	audit    audit.Sink     // takes what the kernel tells; nil has nothing told
	host     *cgroup.Host
	groups   bool // limits by control groups; else by a watchdog

	// unrecorded is closed when events cannot be written any more, which is the
	// end of the box; nil is never.
	unrecorded <-chan struct{}

	// finish works out the rest of the layout, if it is not whole yet, while
	// the guest program starts.
	finish func() error
	// made is told of the box when its first process is there; connected gets
	// the connection, on which nothing is answered before the box is ready.
	// Both may be nil.
	made      func(*box)
	connected func(net.Conn)
}

// programs lists the files that a start needs, for take.
func (s *start) programs() []*os.File {
	files := []*os.File{s.exe}
	if s.gateway != nil {
		files = append(files, s.out)
	}
	if s.agent != nil {
		files = slices.Concat(files, []*os.File{s.agent}, s.supplies, s.image, s.template)
	}
	return files
}

// places tells where the programs are files, which descriptors do not tell, in
// the order of programs, for the box's own; nil without a kernel of its own.
func (s *start) places() []string {
	if s.agent == nil {
		return nil
	}
	return []string{s.exe.Name(), s.agent.Name()}
}

// take is the other side of programs and places. The last files, so many, are a
// template's.
func (s *start) take(files []*os.File, template int, places []string) {
	if n := len(files) - template; template > 0 && n > 0 {
		s.template, files = files[n:], files[:n]
	}
	s.exe, files = files[0], files[1:]
	if s.gateway != nil && len(files) > 0 {
		s.out, files = files[0], files[1:]
	}
	if len(files) > 0 {
		s.agent, files = files[0], files[1:]
		n := 0
		if k := s.layout.config.Kernel; k != nil {
			n = min(k.Supplied, len(files))
		}
		s.supplies, s.image = files[:n], files[n:]
	}
	if len(places) == 2 && s.agent != nil {
		s.exe, s.agent = kernel.Named(s.exe, places[0]), kernel.Named(s.agent, places[1])
	}
}
