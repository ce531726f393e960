package vfs

import (
	"iter"
	"time"
)

// A ChangeKind is the type of a [Change].
type ChangeKind byte

// The kinds of changes.
const (
	ChangeFile   ChangeKind = 1
	ChangeDir    ChangeKind = 2
	ChangeLink   ChangeKind = 3
	ChangePipe   ChangeKind = 4
	ChangeSocket ChangeKind = 5
	ChangeChar   ChangeKind = 6
	ChangeBlock  ChangeKind = 7
	ChangeGone   ChangeKind = 8 // the base has a file here, this tree has none
	ChangeSame   ChangeKind = 9 // another name of an earlier entry
)

// A Change is one path at which a tree differs from its base. It replaces the
// file of the base, unless both are directories: then it only changes the
// attributes of the directory.
//
// Changes are sorted as a walk meets them: by names in byte order, a directory
// before its contents, and each path once.
type Change struct {
	Path string // without a leading slash; empty is the root directory
	Kind ChangeKind

	Mode     uint32 // permission bits, 07777
	UID, GID uint32
	ModTime  time.Time

	Target string // of a link: its text
	First  int64  // of another name: the number of the entry, of those that are Shared
	Device uint64 // of a device: major<<32 | minor
	Opaque bool   // of a directory: the contents of the base are hidden
	Shared bool   // of a file: a later entry may be another name of it

	Size int64 // of a file
	// Data yields the contents of a file in order; gaps are holes. The bytes
	// are valid until the next step. Nil means a file of one hole.
	Data iter.Seq2[Extent, error]
}

// An Extent is a piece of a file.
type Extent struct {
	Offset int64
	Bytes  []byte
}
