package snapshot

import (
	"fmt"
	"iter"
	"path"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// A Fit is what a sandbox that begins with a snapshot can have of it.
type Fit struct {
	// From is whom the files belonged to, and To whom the sandbox's commands run as. Files of the one become files of
	// the other, and what was in the home of the one is in that of the other. A nil From changes nothing.
	From *Owner
	To   Owner

	// Places are the directories that the sandbox may change, as paths of entries. Nil is the whole tree.
	Places []string

	// Own reports whether a path is made for each sandbox anew, so that an entry for it says nothing. It may be nil.
	Own func(path string) bool

	OneOwner   bool                  // each file belongs to To
	Devices    bool                  // there can be devices
	Sockets    bool                  // there can be sockets
	Attributes func(key string) bool // whether there can be an attribute; nil is none
	Most       int64                 // of the contents of all files with their holes; zero is no bound
}

// maxTold is how many files an error names.
const maxTold = 10

// maxToldName is how much of a name it says.
const maxToldName = 200

// Check returns an error that names what of a snapshot does not fit, or nil. It reads no contents.
func (f *Fit) Check(entries iter.Seq2[Entry, error]) error {
	var told []string
	count, size := 0, int64(0)
	for e, err := range entries {
		if err != nil {
			return err
		}
		if size += e.Size; e.Size > MaxSize || size < 0 || f.Most > 0 && size > f.Most {
			return fmt.Errorf("its files have more than %d MiB with their holes, up to %.*q, and a sandbox of this tier with these limits begins with at most that; raise its disk limit, or remove files first: %w",
				f.Most>>20, maxToldName, "/"+e.Path, paddock.Exhausted)
		}
		why := f.refused(&e)
		if why == "" {
			continue
		}
		if count++; len(told) < maxTold {
			told = append(told, fmt.Sprintf("%.*q (%s)", maxToldName, "/"+f.path(e.Path), why))
		}
	}
	if count == 0 {
		return nil
	}
	text := strings.Join(told, ", ")
	if count > len(told) {
		text += fmt.Sprintf(" and %d more", count-len(told))
	}
	return fmt.Errorf("this tier cannot have %d of its files: %s; remove them and take another snapshot, or choose a tier that can: %w", count, text, paddock.Unsupported)
}

// refused returns why the sandbox cannot have an entry; it is empty for one that it can have.
func (f *Fit) refused(e *Entry) string {
	if f.skips(e) {
		return ""
	}
	if why := f.misplaced(e); why != "" {
		return why
	}
	switch e.Kind {
	case Gone, Same:
		return ""
	case Char, Block:
		if !f.Devices {
			return "a device"
		}
	case Socket:
		if !f.Sockets {
			return "a socket"
		}
	}
	for key := range e.Attributes {
		if f.Attributes == nil || !f.Attributes(key) {
			return fmt.Sprintf("the extended attribute %.64q", key)
		}
	}
	if f.OneOwner && f.From != nil && e.UID != f.From.UID && !f.isPlace(f.path(e.Path)) {
		return fmt.Sprintf("it belongs to user %d", e.UID)
	}
	return ""
}

// misplaced returns why an entry's path is none that the sandbox may change.
func (f *Fit) misplaced(e *Entry) string {
	if f.Places == nil {
		return ""
	}
	p := f.path(e.Path)
	for _, place := range f.Places {
		if p == place {
			if e.Kind != Dir {
				return "a place of its own, and no directory"
			}
			return ""
		}
		if strings.HasPrefix(p, place+"/") {
			return ""
		}
	}
	if e.Kind == Gone {
		return "removed from the system, which this tier shows as it is"
	}
	return "in the system, which this tier shows as it is"
}

// skips reports whether an entry says nothing for the sandbox: what each one has of its own, and directories outside of its
// places, whose attributes alone an entry without Opaque tells.
func (f *Fit) skips(e *Entry) bool {
	if f.Own != nil && !e.Shared && f.Own(e.Path) { // later hard links count those that are shared
		return true
	}
	if f.Places == nil || e.Kind != Dir || e.Opaque {
		return false
	}
	return f.misplaced(e) != ""
}

func (f *Fit) isPlace(p string) bool {
	for _, place := range f.Places {
		if p == place {
			return true
		}
	}
	return false
}

// path returns where an entry's file is in the sandbox.
func (f *Fit) path(p string) string {
	if f.From == nil || f.From.Home == f.To.Home {
		return p
	}
	from, to := home(f.From.Home), home(f.To.Home)
	switch rest, ok := strings.CutPrefix(p, from+"/"); {
	case from == "" || to == "":
		return p
	case p == from:
		return to
	case ok:
		return to + "/" + rest
	}
	return p
}

func home(p string) string { return strings.TrimPrefix(path.Clean("/"+p), "/") }

// Adopt yields the entries as the sandbox has them, without those that say nothing for it. Their order is that of the
// snapshot, which another home may break: but directories still come before what is in them. Check has passed.
func (f *Fit) Adopt(entries iter.Seq2[Entry, error]) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		for e, err := range entries {
			if err != nil {
				yield(Entry{}, err)
				return
			}
			if f.skips(&e) {
				continue
			}
			e.Path = f.path(e.Path)
			switch {
			case f.OneOwner:
				e.UID, e.GID = f.To.UID, f.To.GID
			case f.From != nil:
				if e.UID == f.From.UID {
					e.UID = f.To.UID
				}
				if e.GID == f.From.GID {
					e.GID = f.To.GID
				}
			}
			if !yield(e, nil) {
				return
			}
		}
	}
}
