package archive

import (
	"archive/zip"
	"bytes"

	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
)

// A held is an archive that is made in memory. Its task pays for each byte before it is there.
type held struct {
	t *kernel.Task
	b []byte // from kernel.Room
}

// Write appends p; it does not fail.
func (h *held) Write(p []byte) (int, error) {
	h.t.Step(1 + len(p)>>6)
	h.b = append(kernel.Room(h.t, "archive", h.t.K.Limits.Archive, h.b, len(p)), p...)
	return len(p), nil
}

// free gives back what is held.
func (h *held) free() {
	h.t.Shrink(kernel.Cost(h.b))
	h.b = nil
}

// member is about how much memory an entry of a directory of a zip archive takes, beside its name.
const member = 300

// listed reads the directory of a zip archive. The members are counted until the task ends.
func listed(t *kernel.Task, b []byte) (*zip.Reader, error) {
	t.Grow(member * bytes.Count(b, []byte("PK\x01\x02"))) // each entry begins with this
	return zip.NewReader(bytes.NewReader(b), int64(len(b)))
}
