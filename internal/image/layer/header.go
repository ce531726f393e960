package layer

import (
	"archive/tar"
	"fmt"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// Own gives a header names of its own and checks their length. Those that package tar returns can be parts of a record of
// 1 MiB, which lives as long as somebody keeps one of them.
func Own(h *tar.Header) error {
	if len(h.Name) > maxName || len(h.Linkname) > maxName {
		return fmt.Errorf("%q: a name and a link have at most %d bytes: %w", strings.Clone(clip(h.Name)), maxName, paddock.Invalid)
	}
	h.Name, h.Linkname = strings.Clone(h.Name), strings.Clone(h.Linkname)
	return nil
}
