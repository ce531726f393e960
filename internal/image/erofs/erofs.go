package erofs

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
)

// Of the format on disk.
const (
	magic         = 0xe0f5e1e2
	superblockAt  = 1024
	superblockLen = 128
	inodeLen      = 64 // of an extended inode
	slotBits      = 5
	direntLen     = 12
	compatMtime   = 2 // inodes have times of modification
	layoutPlain   = 0
	layoutInline  = 2
	extended      = 1
	firstSlot     = inodeLen // of the metadata: the root has another number than zero
)

// Convert writes an image with the files of layers, the lowest first, each a tar archive that is not compressed. It
// closes what it opened. It returns the size of the file in bytes. After an error the file is useless.
func Convert(ctx context.Context, f file, layers []func() (io.ReadCloser, error), b Bounds) (int64, error) {
	data := newBlocks(f)
	t := newTree(b, data)
	for n, open := range layers {
		if err := t.one(ctx, open); err != nil {
			return 0, fmt.Errorf("layer %d of %d: %w", n+1, len(layers), err)
		}
	}
	return t.write()
}

func (t *tree) one(ctx context.Context, open func() (io.ReadCloser, error)) error {
	in, err := open()
	if err != nil {
		return err
	}
	return errors.Join(t.add(ctx, in), in.Close())
}

// A superblock as it is on disk.
type superblock struct {
	Magic, Checksum, FeatureCompat         uint32
	BlockBits, ExtSlots                    uint8
	Root                                   uint16
	Inodes, BuildTime                      uint64
	BuildNsec, Blocks, MetaBlock, XattrAt  uint32
	UUID, Volume                           [16]byte
	FeatureIncompat                        uint32
	Algorithms, ExtraDevices, DeviceSlotAt uint16
	DirBlockBits, Prefixes                 uint8
	PrefixStart                            uint32
	PackedNumber                           uint64
	Rest                                   [24]byte
}

// An inode as it is on disk.
type diskInode struct {
	Format, Xattrs, Mode, Zero uint16
	Size                       uint64
	Where, Number, UID, GID    uint32
	Mtime                      uint64
	Nsec, Links                uint32
	Rest                       [16]byte
}

type dirent struct {
	Number  uint64
	NameAt  uint16
	Kind    uint8
	Nothing uint8
}

// write lays out the tree behind the contents of files, and writes it.
func (t *tree) write() (int64, error) {
	order, err := t.lay()
	if err != nil {
		return 0, err
	}
	meta := t.data.next
	at, inodes := int64(firstSlot), uint64(0)
	for _, n := range order {
		i := n.inode
		if i.placed {
			continue
		}
		i.placed = true
		inodes++
		room := int64(inodeLen)
		if i.inline {
			room += int64(i.size)
		}
		if at%blockSize+room > blockSize {
			at = (at/blockSize + 1) * blockSize
		}
		i.number = uint64(at) >> slotBits
		at = (at + room + 1<<slotBits - 1) >> slotBits << slotBits
	}
	n := (at + blockSize - 1) / blockSize
	if _, err := t.data.take(n); err != nil {
		return 0, err
	}
	if err := t.charge(n * blockSize); err != nil {
		return 0, err
	}
	buf := make([]byte, n*blockSize)
	number := uint32(0)
	for _, n := range order {
		if n.inode.placed {
			n.inode.placed = false
			number++
			if err := t.inode(buf, n, number); err != nil {
				return 0, err
			}
		}
	}
	if _, err := t.data.f.WriteAt(buf, meta*blockSize); err != nil {
		return 0, fmt.Errorf("write the file of the image: %w", err)
	}
	sb := superblock{Magic: magic, FeatureCompat: compatMtime, BlockBits: blockBits, Root: uint16(t.root.inode.number), Inodes: inodes, Blocks: uint32(t.data.next), MetaBlock: uint32(meta)}
	head := make([]byte, blockSize)
	if k, err := binary.Encode(head[superblockAt:], binary.LittleEndian, sb); err != nil || k != superblockLen {
		return 0, fmt.Errorf("the superblock has %d bytes, want %d: %w", k, superblockLen, err)
	}
	if _, err := t.data.f.WriteAt(head, 0); err != nil {
		return 0, fmt.Errorf("write the file of the image: %w", err)
	}
	size := t.data.next * blockSize
	return size, t.data.f.Truncate(size)
}

// lay lists all names, directories before what is in them, counts the links of each file, and gives directories that
// need it blocks of their own.
func (t *tree) lay() ([]*node, error) {
	order := []*node{t.root}
	t.root.inode.links = 2
	for k := 0; k < len(order); k++ {
		n := order[k]
		i := n.inode
		switch i.mode & kindMask {
		case kindLink:
			i.inline = i.size <= blockSize-inodeLen
			if !i.inline && i.block == 0 {
				if err := t.chargeBlocks(int64(i.size)); err != nil {
					return nil, err
				}
				at, err := t.data.put(bytes.NewReader([]byte(i.target)), int64(i.size))
				if err != nil {
					return nil, err
				}
				i.block = at
			}
			continue
		case kindDir:
		default:
			continue
		}
		names := append(slices.Collect(maps.Keys(i.children)), ".", "..")
		slices.Sort(names)
		i.groups = groups(names)
		i.size = uint64((len(i.groups)-1)*blockSize + used(i.groups[len(i.groups)-1]))
		i.inline = i.size <= blockSize-inodeLen
		if !i.inline {
			blocks := int64(len(i.groups))
			at, err := t.data.take(blocks)
			if err == nil {
				err = t.charge(blocks * blockSize)
			}
			if err != nil {
				return nil, err
			}
			i.block = at
		}
		for _, name := range names {
			c := i.children[name]
			if c == nil {
				continue // itself, and its parent
			}
			if c.inode.mode&kindMask == kindDir {
				c.inode.links = 2
				i.links++
			} else {
				c.inode.links++
			}
			order = append(order, c)
		}
	}
	return order, nil
}

// groups divides the sorted names of a directory into those of each block.
func groups(names []string) [][]string {
	var list [][]string
	from, size := 0, 0
	for k, name := range names {
		need := direntLen + len(name)
		if size+need > blockSize {
			list = append(list, names[from:k])
			from, size = k, 0
		}
		size += need
	}
	return append(list, names[from:])
}

func used(names []string) int {
	size := 0
	for _, name := range names {
		size += direntLen + len(name)
	}
	return size
}

// inode writes an inode into the metadata, with what stands beside it, and the blocks of a directory.
func (t *tree) inode(meta []byte, n *node, number uint32) error {
	i := n.inode
	layout := layoutPlain
	if i.inline {
		layout = layoutInline
	}
	d := diskInode{
		Format: uint16(extended | layout<<1), Mode: i.mode, Size: i.size, Where: i.block, Number: number,
		UID: i.uid, GID: i.gid, Mtime: uint64(i.mtime), Nsec: i.nsec, Links: i.links,
	}
	if k := i.mode & kindMask; k == kindChar || k == kindBlock {
		d.Where = i.device
	}
	at := int(i.number << slotBits)
	if k, err := binary.Encode(meta[at:], binary.LittleEndian, d); err != nil || k != inodeLen {
		return fmt.Errorf("an inode has %d bytes, want %d: %w", k, inodeLen, err)
	}
	beside := meta[at+inodeLen:]
	switch {
	case i.inline && i.mode&kindMask == kindLink:
		copy(beside, i.target)
	case i.inline && i.mode&kindMask == kindDir:
		return n.dirents(beside[:i.size], i.groups[0])
	case i.mode&kindMask == kindDir:
		buf := make([]byte, len(i.groups)*blockSize)
		for k, names := range i.groups {
			if err := n.dirents(buf[k*blockSize:(k+1)*blockSize], names); err != nil {
				return err
			}
		}
		if _, err := t.data.f.WriteAt(buf, int64(i.block)*blockSize); err != nil {
			return fmt.Errorf("write the file of the image: %w", err)
		}
	}
	return nil
}

// dirents writes entries of a directory into one block: their heads first, then their names.
func (n *node) dirents(block []byte, names []string) error {
	at := direntLen * len(names)
	for k, name := range names {
		c := n
		switch {
		case name == "..":
			c = n.parent
		case name != ".":
			c = n.inode.children[name]
		}
		d := dirent{Number: c.inode.number, NameAt: uint16(at), Kind: kindOf(c.inode.mode)}
		if _, err := binary.Encode(block[k*direntLen:], binary.LittleEndian, d); err != nil {
			return fmt.Errorf("an entry of a directory: %w", err)
		}
		at += copy(block[at:], name)
	}
	return nil
}

// kindOf is the kind of a file as entries of directories have it.
func kindOf(mode uint16) uint8 {
	switch mode & kindMask {
	case kindFile:
		return 1
	case kindDir:
		return 2
	case kindChar:
		return 3
	case kindBlock:
		return 4
	case kindFifo:
		return 5
	}
	return 7
}
