package vfs

// An Op says what happened to a file.
type Op string

// What can happen to a file.
const (
	Made    Op = "made"
	Written Op = "written"
	Removed Op = "removed"
	Moved   Op = "moved"
	Changed Op = "changed"
)

type watch struct{}

// tell reports that something happened to an entry of d.
func (f *FS) tell(Op, *node, string) {}

// tellFile reports that something happened to a file whose name is not at hand.
func (f *FS) tellFile(Op, *node) {}
