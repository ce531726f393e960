package boxinit

import (
	"fmt"
	"os"

	"github.com/paddock-sandbox/paddock"
)

// Names of the files that come with a [Config]. A runtime may add names of its own, which
// its guest kernel reads from [GuestKernelFiles].Supplies.
const (
	FileTUN    = "tun"    // the device that makes the link; without it the init opens the host's by path
	FileAgent  = "agent"  // the agent's program, which a guest kernel executes
	FileEvents = "events" // receives the events of a guest kernel's processes
	FileLedger = "ledger" // takes what is refused, for the time after the box
	FileSizes  = "sizes"  // tells what a view shows; see Sizes
	FileImage  = "image"  // the parts of a saved box, in the order in which Save wrote them

	FileMemoryUsed  = "memory used"  // of the box's control group: how much memory it has, in bytes
	FileMemoryParts = "memory parts" // the same by kinds
	FilePIDsPeak    = "pids peak"    // of the box's control group: the largest number of processes and threads so far
	FilePIDsEvents  = "pids events"  // how often the group refused one

	FileWitness = "witness" // takes a Change for each change of a tree of the host's; see Change

	FileTemplate = "template"         // receive the parts of a template, in the same order
	FileWritten  = "template written" // receives one byte when the template is complete
)

// Files is a table of open files by name. The sender adds files and transmits Names beside the
// descriptors; the receiver rebuilds the table with [NamedFiles] and reads each file by its name.
// One name may hold several files, whose order is kept. The zero Files is empty.
type Files struct {
	names []string
	files []*os.File
}

// NamedFiles rebuilds a table from what was received. It fails unless each descriptor has a name.
func NamedFiles(names []string, files []*os.File) (*Files, error) {
	if len(names) != len(files) {
		return nil, fmt.Errorf("%d descriptors came with %d names: %w", len(files), len(names), paddock.Internal)
	}
	return &Files{names, files}, nil
}

// Add appends files under a name.
func (t *Files) Add(name string, files ...*os.File) {
	for _, f := range files {
		t.names, t.files = append(t.names, name), append(t.files, f)
	}
}

// Append adds everything that another table holds.
func (t *Files) Append(o *Files) {
	t.names, t.files = append(t.names, o.Names()...), append(t.files, o.All()...)
}

// Names returns the name of each file, in the order of All.
func (t *Files) Names() []string {
	if t == nil {
		return nil
	}
	return t.names
}

// All returns every file.
func (t *Files) All() []*os.File {
	if t == nil {
		return nil
	}
	return t.files
}

// Of returns the files of a name, in the order in which they were added.
func (t *Files) Of(name string) []*os.File {
	var list []*os.File
	for i, n := range t.Names() {
		if n == name {
			list = append(list, t.files[i])
		}
	}
	return list
}

// One returns the first file of a name, or nil.
func (t *Files) One(name string) *os.File {
	if list := t.Of(name); len(list) > 0 {
		return list[0]
	}
	return nil
}

// Close closes every file and empties the table. To check that a file was written
// completely, the caller closes it first.
func (t *Files) Close() {
	for _, f := range t.All() {
		f.Close()
	}
	if t != nil {
		t.names, t.files = nil, nil
	}
}
