package erofs

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/layer"
)

// Kinds of files, as a mode has them.
const (
	kindMask   = 0o170000
	kindFifo   = 0o010000
	kindChar   = 0o020000
	kindDir    = 0o040000
	kindBlock  = 0o060000
	kindFile   = 0o100000
	kindLink   = 0o120000
	permission = 0o7777
)

const (
	whiteout  = ".wh."
	opaque    = ".wh..wh..opq"
	maxLinks  = 40
	maxPath   = 4096
	maxName   = 255
	maxDepth  = 200
	maxLooks  = 4_000_000 // of whiteouts
	maxMeta   = 384 << 20 // bytes of memory that the tree takes, without the contents of files
	nameCosts = 300       // of them each name, beside its text and that of a link
)

// Bounds of an image.
type Bounds struct {
	Bytes int64 // of the file that is made, and of what the layers contain
	Names int   // files
}

// An inode is a file, which may have several names.
type inode struct {
	mode     uint16
	uid, gid uint32
	mtime    int64
	nsec     uint32
	size     uint64
	device   uint32
	target   string // of a symbolic link
	block    uint32 // where the contents begin

	children map[string]*node // of a directory

	// Of the layout.
	links  uint32
	number uint64 // of its slot
	placed bool
	groups [][]string // names in each block of a directory
	inline bool
}

// A node is a name in a directory.
type node struct {
	inode  *inode
	parent *node
	name   string
	layer  int // that made it last, or something below it
}

// A tree is an image while it is made.
type tree struct {
	root  *node
	layer int
	data  *blocks

	bytes int64 // that the file may still take
	meta  int64 // that the tree may still take
	names int
	looks int
}

func newTree(b Bounds, data *blocks) *tree {
	t := &tree{data: data, bytes: b.Bytes, meta: maxMeta, names: b.Names}
	t.root = &node{inode: &inode{mode: kindDir | 0o755, children: map[string]*node{}}}
	t.root.parent = t.root
	return t
}

func tooLarge() error {
	return fmt.Errorf("it is larger, unpacked, than an image may be: %w", paddock.Exhausted)
}

func (t *tree) charge(n int64) error {
	if n < 0 || n > t.bytes {
		return tooLarge()
	}
	t.bytes -= n
	return nil
}

// chargeBlocks takes the blocks of a file.
func (t *tree) chargeBlocks(size int64) error {
	if size < 0 || size > t.bytes {
		return tooLarge()
	}
	return t.charge((size + blockSize - 1) / blockSize * blockSize)
}

// A meter counts what is read of a layer that is not charged as a file: much of an archive need not become files.
type meter struct {
	ctx  context.Context //nolint:containedctx // a reader has no other way to be told
	r    io.Reader
	left int64
}

func (m *meter) Read(p []byte) (int, error) {
	if m.ctx.Err() != nil {
		return 0, fmt.Errorf("it was given up: %w", paddock.Canceled)
	}
	n, err := m.r.Read(p)
	if m.left -= int64(n); m.left < 0 {
		return 0, tooLarge()
	}
	return n, err
}

// add adds a layer, an uncompressed tar archive, over those before.
func (t *tree) add(ctx context.Context, r io.Reader) error {
	t.layer++
	// What an archive has is at most what its files may take, with as much again for headers.
	in := tar.NewReader(&meter{ctx, r, 2*t.bytes + 1<<20})
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		var k paddock.Kind
		if errors.As(err, &k) {
			return err // of who reads it
		}
		if err != nil {
			return fmt.Errorf("the layer is no archive: %w: %w", err, paddock.Invalid)
		}
		if err := layer.Own(h); err != nil {
			return err
		}
		if err := t.count(len(h.Name) + len(h.Linkname)); err != nil {
			return err
		}
		if h.Typeflag == tar.TypeXGlobalHeader {
			continue // what it says of other entries is not kept
		}
		if err := t.entry(h, in); err != nil {
			return fmt.Errorf("%q: %w", clip(h.Name), err)
		}
	}
}

// count takes one of the names that there may be, with the bytes of its texts.
func (t *tree) count(texts int) error {
	if t.names--; t.names < 0 {
		return fmt.Errorf("it has too many files: %w", paddock.Exhausted)
	}
	if t.meta -= nameCosts + int64(texts); t.meta < 0 {
		return fmt.Errorf("its names and links are more than %d MiB: %w", maxMeta>>20, paddock.Exhausted)
	}
	return nil
}

func clip(name string) string {
	if len(name) > 200 {
		return name[:200] + "…"
	}
	return name
}

// clean gives the parts of a name below the top.
func clean(name string) ([]string, error) {
	if len(name) > maxPath || strings.ContainsRune(name, 0) {
		return nil, fmt.Errorf("it is no name: %w", paddock.Invalid)
	}
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	if name == "" {
		return nil, nil
	}
	return strings.Split(name, "/"), nil
}

func (t *tree) entry(h *tar.Header, in io.Reader) error {
	parts, err := clean(h.Name)
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		return t.top(h)
	}
	base := parts[len(parts)-1]
	if strings.HasPrefix(base, whiteout) {
		return t.remove(parts[:len(parts)-1], base)
	}
	if len(base) > maxName {
		return fmt.Errorf("a name has at most %d bytes: %w", maxName, paddock.Invalid)
	}
	dir, err := t.directory(parts[:len(parts)-1])
	if err != nil {
		return err
	}
	if dir.depth() >= maxDepth {
		return tooDeep()
	}
	return t.put(dir, base, h, in)
}

func tooDeep() error {
	return fmt.Errorf("it is in more than %d directories, one in the other: %w", maxDepth, paddock.Unsupported)
}

// top gives the root the attributes that a layer has for it. Everybody may read it and look into it, because an archive of
// a directory of somebody's own says otherwise.
func (t *tree) top(h *tar.Header) error {
	if h.Typeflag != tar.TypeDir {
		return nil
	}
	i := t.root.inode
	i.mode = uint16(h.Mode&permission) | 0o755 | kindDir
	return i.owned(h)
}

// remove does what a whiteout says. In a directory that is not there, it removes nothing.
func (t *tree) remove(parts []string, base string) error {
	dir, missing, err := t.resolve(parts)
	if err != nil {
		return err
	}
	gone := strings.TrimPrefix(base, whiteout)
	switch {
	case base != opaque && (gone == "" || gone == "." || gone == ".."):
		return fmt.Errorf("it removes nothing that has a name: %w", paddock.Invalid)
	case len(missing) > 0:
		return nil
	case dir.inode.children == nil:
		return fmt.Errorf("it is in what is no directory: %w", paddock.Invalid)
	case base == opaque:
		return t.prune(dir, true)
	}
	if n := dir.inode.children[gone]; n != nil {
		return t.prune(n, false)
	}
	return nil
}

// put makes one file, in place of what is there.
func (t *tree) put(dir *node, base string, h *tar.Header, in io.Reader) error {
	if h.Typeflag == tar.TypeLink {
		return t.link(dir, base, h)
	}
	i := &inode{mode: uint16(h.Mode & permission)}
	if err := i.owned(h); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if was := dir.inode.children[base]; was != nil && was.inode.mode&kindMask == kindDir {
			i.children = was.inode.children
			i.mode |= kindDir
			was.inode = i
			t.touch(was)
			return nil
		}
		i.mode |= kindDir
		i.children = map[string]*node{}
	case tar.TypeReg, tar.TypeGNUSparse, '\x00':
		i.mode |= kindFile
		i.size = uint64(h.Size)
		if err := t.chargeBlocks(h.Size); err != nil {
			return err
		}
		var err error
		if i.block, err = t.data.put(in, h.Size); err != nil {
			return err
		}
	case tar.TypeSymlink:
		if h.Linkname == "" || len(h.Linkname) >= maxPath || strings.ContainsRune(h.Linkname, 0) {
			return fmt.Errorf("it is a link to nothing: %w", paddock.Invalid)
		}
		i.mode, i.target, i.size = kindLink|0o777, h.Linkname, uint64(len(h.Linkname))
	case tar.TypeChar, tar.TypeBlock:
		if h.Devmajor < 0 || h.Devmajor >= 1<<12 || h.Devminor < 0 || h.Devminor >= 1<<20 {
			return fmt.Errorf("it is a device that no kernel has: %w", paddock.Invalid)
		}
		if h.Devmajor == 0 && h.Devminor == 0 {
			delete(dir.inode.children, base) // an overlay takes it for a removed file, and so does this
			return nil
		}
		i.device = uint32(h.Devminor&0xff | h.Devmajor<<8 | (h.Devminor&^0xff)<<12)
		i.mode |= kindChar
		if h.Typeflag == tar.TypeBlock {
			i.mode = i.mode&^kindMask | kindBlock
		}
	case tar.TypeFifo:
		i.mode |= kindFifo
	default:
		return fmt.Errorf("it is of a kind, %q, that images do not have: %w", h.Typeflag, paddock.Unsupported)
	}
	t.set(dir, base, i)
	return nil
}

func (t *tree) set(dir *node, base string, i *inode) *node {
	t.touch(dir)
	n := &node{inode: i, parent: dir, name: base, layer: t.layer}
	dir.inode.children[base] = n
	return n
}

// touch notes that this layer has something there: a whiteout in it removes only what was there before.
func (t *tree) touch(n *node) {
	for ; n.layer != t.layer && n != t.root; n = n.parent {
		n.layer = t.layer
	}
}

// owned sets the owner and the time.
func (i *inode) owned(h *tar.Header) error {
	if h.Uid < 0 || h.Gid < 0 || int64(h.Uid) >= math.MaxUint32 || int64(h.Gid) >= math.MaxUint32 {
		return fmt.Errorf("its owner is %d:%d, and a number is 0 to %d: %w", h.Uid, h.Gid, uint32(math.MaxUint32-1), paddock.Invalid)
	}
	i.uid, i.gid = uint32(h.Uid), uint32(h.Gid)
	if s := h.ModTime.Unix(); s > 0 {
		i.mtime, i.nsec = s, uint32(h.ModTime.Nanosecond())
	}
	return nil
}

// link gives a file one more name.
func (t *tree) link(dir *node, base string, h *tar.Header) error {
	parts, err := clean(h.Linkname)
	if err != nil {
		return err
	}
	if len(parts) == 0 {
		return fmt.Errorf("it is another name of the root: %w", paddock.Invalid)
	}
	at, missing, err := t.resolve(parts[:len(parts)-1])
	if err != nil {
		return err
	}
	var to *node
	if len(missing) == 0 && at.inode.children != nil {
		to = at.inode.children[parts[len(parts)-1]]
	}
	if to == nil || to.inode.mode&kindMask == kindDir {
		return fmt.Errorf("it is another name of what is not there: %w", paddock.Invalid)
	}
	t.set(dir, base, to.inode)
	return nil
}

// resolve follows the links of a directory's name as the tree would. What is not there is returned as missing, as it is
// written.
func (t *tree) resolve(parts []string) (at *node, missing []string, err error) {
	at = t.root
	for links := 0; len(parts) > 0; {
		part := parts[0]
		parts = parts[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			if len(missing) > 0 {
				missing = missing[:len(missing)-1]
			} else {
				at = at.parent
			}
			continue
		}
		if len(part) > maxName {
			return nil, nil, fmt.Errorf("a name has at most %d bytes: %w", maxName, paddock.Invalid)
		}
		var next *node
		if len(missing) == 0 {
			if at.inode.children == nil {
				return nil, nil, fmt.Errorf("it is in what is no directory: %w", paddock.Invalid)
			}
			next = at.inode.children[part]
		}
		if next == nil {
			if missing = append(missing, part); len(missing)+at.depth() > maxDepth {
				return nil, nil, tooDeep()
			}
			continue
		}
		if next.inode.mode&kindMask != kindLink {
			at = next
			continue
		}
		if links++; links > maxLinks || len(parts) > maxPath {
			return nil, nil, fmt.Errorf("its links lead in a circle: %w", paddock.Invalid)
		}
		if path.IsAbs(next.inode.target) {
			at = t.root
		}
		parts = append(strings.Split(next.inode.target, "/"), parts...)
	}
	return at, missing, nil
}

func (n *node) depth() int {
	d := 0
	for ; n.parent != n; n = n.parent {
		d++
	}
	return d
}

// directory gives a directory, and makes what of it is missing.
func (t *tree) directory(parts []string) (*node, error) {
	at, missing, err := t.resolve(parts)
	if err != nil {
		return nil, err
	}
	if at.inode.children == nil {
		return nil, fmt.Errorf("it is in what is no directory: %w", paddock.Invalid)
	}
	for _, name := range missing {
		if err := t.count(len(name)); err != nil {
			return nil, err
		}
		at = t.set(at, name, &inode{mode: kindDir | 0o755, children: map[string]*node{}})
	}
	return at, nil
}

// prune removes a file of the layers before, or only what is below it. What this layer made stays, whatever comes first
// in it.
func (t *tree) prune(n *node, below bool) error {
	if t.looks++; t.looks > maxLooks {
		return fmt.Errorf("it removes files in too many ways: %w", paddock.Exhausted)
	}
	if !below && n.layer != t.layer {
		delete(n.parent.inode.children, n.name)
		return nil
	}
	for _, c := range n.inode.children {
		if err := t.prune(c, false); err != nil {
			return err
		}
	}
	return nil
}
