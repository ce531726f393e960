package guestkernel

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

// A checkpoint is a saved box: a directory of files that its kernel wrote, with a
// description. Only the kernel and the agent that wrote it may read it. This is checked
// before they do, because they do not detect it themselves.
type checkpoint struct {
	dir   string
	about about

	// unnamed means that the parts have no names. They are held open, and disappear with
	// this process.
	unnamed bool
	held    []*os.File
}

// An about is the file that completes a checkpoint's directory. It is written last.
type about struct {
	Format  int       `json:"format"`
	Created time.Time `json:"created"`
	Name    string    `json:"name,omitempty"` // of SnapshotOptions
	Kernel  string    `json:"kernel"`
	Agent   string    `json:"agent"` // checksum of the agent's program
	Parts   []part    `json:"parts"`
	Memory  bool      `json:"memory"` // with processes; otherwise only files
	Order   box.Order `json:"order"`  // how the box was made
}

// A part is one of a checkpoint's files.
type part struct {
	Name string `json:"name"`
	Size int64  `json:"size"`
	Sum  string `json:"sum"`

	// Sparse means that Sum covers only blocks that are not zero, because the file of a
	// machine's memory is as large as the machine.
	Sparse bool `json:"sparse,omitempty"`
}

const (
	checkpointFormat = 1
	checkpointFile   = box.SealName
)

// Parts of an image, in the order of the kernel.
var (
	memoryParts = []string{"state", "index", "pages"}
	fileParts   = []string{"files.tar"}
)

// Prefixes of directories of checkpoints. The maker of a snapshot removes it. The
// checkpoint of a paused sandbox is a part of that sandbox.
const (
	snapshotPrefix = "im-"
	pausedPrefix   = "paused-"
)

// newCheckpoint makes the directory of a checkpoint, for a box of this plan.
func newCheckpoint(data, prefix, kernel string, p *box.Plan) (*checkpoint, error) {
	if err := box.OwnDirectory(data); err != nil {
		return nil, err
	}
	var b [10]byte
	_, _ = rand.Read(b[:]) // never fails
	m := &checkpoint{dir: filepath.Join(data, prefix+strings.ToLower(base32.StdEncoding.EncodeToString(b[:])))}
	if err := os.Mkdir(m.dir, 0o700); err != nil {
		return nil, fmt.Errorf("save the box: %w", err)
	}
	if prefix == pausedPrefix {
		if err := box.MarkBoot(m.dir); err != nil {
			return nil, errors.Join(fmt.Errorf("save the box: %w", err), m.Remove())
		}
	}
	m.about = about{Format: checkpointFormat, Created: time.Now().UTC(), Kernel: kernel, Order: *box.OrderOf(p)}
	return m, nil
}

// Dir implements box.Saved.
func (m *checkpoint) Dir() string { return m.dir }

// fill makes a box write its parts.
func (m *checkpoint) fill(ctx context.Context, s Saver, b *box.Box, op boxinit.Op) error {
	names := memoryParts
	if m.about.Memory = op != boxinit.OpFiles; !m.about.Memory {
		names = fileParts
	}
	var files []*os.File
	defer func() {
		if !m.unnamed {
			box.CloseAll(files)
		}
	}()
	for _, name := range names {
		f, err := os.OpenFile(filepath.Join(m.dir, name), os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
		if err != nil {
			return box.HostFault(fmt.Errorf("save the box: %w", err))
		}
		files = append(files, f)
	}
	if m.unnamed {
		m.held = files
		if err := os.RemoveAll(m.dir); err != nil {
			return box.HostFault(fmt.Errorf("save the box: %w", err))
		}
	}
	room := s.room(b, m.about.Memory)
	if err := write(ctx, b, op, room, files); err != nil {
		return err
	}
	// The box's init has checked the size, but it was inside the box.
	if err := Bounded(files, room.All+room.All/8); err != nil {
		return fmt.Errorf("save the box: %w", err)
	}
	if !m.about.Memory {
		// The box that begins with it reads it as its own user.
		if err := files[0].Chmod(0o444); err != nil {
			return fmt.Errorf("save the box: %w", err)
		}
	}
	var err error
	for i, f := range files {
		p := part{Name: names[i], Sparse: s.Memory != nil && m.about.Memory}
		if p.Sum, p.Size, err = summing(p.Sparse)(f); err != nil {
			return box.HostFault(fmt.Errorf("save the box: %w", err))
		}
		m.about.Parts = append(m.about.Parts, p)
	}
	// What was inside has had the files until now.
	if err := Bounded(files, room.All+room.All/8); err != nil {
		return fmt.Errorf("save the box: %w", err)
	}
	return nil
}

// room returns how much may be saved of a box. The memory and the disk of a box are
// bounded, but a guest kernel that was taken over could write anything.
func (s Saver) room(b *box.Box, memory bool) boxinit.Room {
	l := b.Limits()
	if memory && s.Memory != nil {
		return boxinit.Room{All: s.Memory(b) + Overhead}
	}
	if memory {
		return boxinit.Room{All: l.Memory + l.Disk + Overhead}
	}
	return archiveRoom(l)
}

// archiveRoom bounds an archive of files. Names have a header each. Holes are not holes any more in a box that begins with
// the archive. A file is in memory a second time while it is written. If that exceeds the limit, the box ends, like any
// command that takes too much memory.
func archiveRoom(l paddock.Limits) boxinit.Room {
	return boxinit.Room{All: l.Disk + l.Disk/4 + Overhead, Content: l.Disk, File: min(l.Disk, l.Memory/2)}
}

// Overhead is a guest kernel's own memory, in bytes.
const Overhead = 64 << 20

// Bounded returns an error if files hold more than limit bytes.
func Bounded(files []*os.File, limit int64) error {
	var sum int64
	for _, f := range files {
		st, err := f.Stat()
		if err != nil {
			return err
		}
		if sum += st.Size(); sum > limit || sum < 0 {
			return fmt.Errorf("more was written than its limits of memory and disk allow: %w", paddock.Exhausted)
		}
	}
	return nil
}

// seal writes the description that completes it.
func (m *checkpoint) seal(agent *os.File) (err error) {
	if m.about.Agent, _, err = sumOf(agent); err != nil || m.unnamed {
		return err
	}
	data, err := json.Marshal(m.about)
	if err != nil {
		return err
	}
	tmp := filepath.Join(m.dir, checkpointFile+".new")
	if err := os.WriteFile(tmp, data, 0o600); err != nil {
		return fmt.Errorf("save the box: %w", err)
	}
	return os.Rename(tmp, filepath.Join(m.dir, checkpointFile))
}

// readCheckpoint reads a checkpoint by its directory.
func readCheckpoint(dir string) (*checkpoint, error) {
	if err := errors.Join(box.CheckOwn(filepath.Dir(dir)), box.CheckOwn(dir)); err != nil {
		return nil, err
	}
	data, err := os.ReadFile(filepath.Join(dir, checkpointFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no snapshot of this ID: %w", paddock.NotFound)
	}
	if err != nil {
		return nil, err
	}
	m := &checkpoint{dir: dir}
	if err := json.Unmarshal(data, &m.about); err != nil {
		return nil, fmt.Errorf("its description is damaged: %w: %w", err, paddock.Conflict)
	}
	if m.about.Format != checkpointFormat {
		return nil, fmt.Errorf("it is of format %d, not %d: another version of Paddock wrote it: %w", m.about.Format, checkpointFormat, paddock.Unsupported)
	}
	return m, nil
}

// open returns the parts, after checking that their content is what was written and that
// their reader is the program that wrote them. known may be nil.
func (m *checkpoint) open(kernel string, agent *os.File, known *sums) (files []*os.File, err error) {
	defer func() {
		if err != nil {
			box.CloseAll(files)
			files = nil
		}
	}()
	if m.about.Kernel != kernel {
		return nil, fmt.Errorf("it was saved by %s, this is %s: %w", m.about.Kernel, kernel, paddock.Unsupported)
	}
	if m.about.Memory {
		sum, _, err := known.of(agent, sumOf)
		if err != nil {
			return nil, err
		}
		if sum != m.about.Agent {
			return nil, fmt.Errorf("it was saved by another version of Paddock, whose agent is a part of it: %w", paddock.Unsupported)
		}
	}
	for i, p := range m.about.Parts {
		name := filepath.Join(m.dir, p.Name)
		if m.unnamed {
			name = fmt.Sprintf("/proc/self/fd/%d", m.held[i].Fd()) // which opens it anew
		}
		f, err := os.Open(name)
		if err != nil {
			return files, fmt.Errorf("a part of it is missing: %w: %w", err, paddock.Conflict)
		}
		files = append(files, f)
		sum, size, err := known.of(f, summing(p.Sparse))
		if err != nil {
			return files, err
		}
		if sum != p.Sum || size != p.Size {
			return files, fmt.Errorf("it is damaged: %s is not what was written: %w", p.Name, paddock.Conflict)
		}
	}
	return files, nil
}

// Remove implements box.Saved. A missing checkpoint is not an error.
func (m *checkpoint) Remove() error {
	box.CloseAll(m.held)
	m.held = nil
	if err := os.RemoveAll(m.dir); err != nil {
		return fmt.Errorf("remove what was saved: %w", err)
	}
	return nil
}

// write makes the box's init write to files.
func write(ctx context.Context, b *box.Box, op boxinit.Op, room boxinit.Room, files []*os.File) error {
	f, err := b.Ask(op, room.Bytes(), files...)
	if err != nil {
		return err
	}
	defer f.Close()
	return b.Report(ctx, f)
}

// adapt returns the spec of a box that begins with the checkpoint. What the spec leaves
// open is as it was. What the checkpoint depends on must be equal.
func (m *checkpoint) adapt(spec *paddock.Spec) (*paddock.Spec, error) {
	was := &m.about.Order
	s := *spec
	s.Root = was.Root
	if s.User == "" {
		s.User = was.User
	}
	standard := box.Defaults() // it was not requested then, and is not now
	memory := &was.Limits.Memory
	if k := was.Layout.Config.GuestKernel; k != nil && k.Machine != nil && m.about.Memory {
		memory = &s.Limits.Memory // a machine has as much as it was made with
		if s.Limits.CPUs == 0 && was.Limits.CPUs != standard.CPUs {
			s.Limits.CPUs = was.Limits.CPUs
		}
	}
	for _, l := range []struct {
		what     string
		now, was *int64
		standard int64
	}{{"disk", &s.Limits.Disk, &was.Limits.Disk, standard.Disk}, {"memory", memory, &was.Limits.Memory, standard.Memory}} {
		if *l.now == 0 && *l.was == l.standard {
			continue
		}
		if *l.now == 0 {
			*l.now = *l.was
		}
		if m.about.Memory && *l.now != *l.was {
			return nil, fmt.Errorf("its %s limit is %d, which memory depends on: %w", l.what, *l.was, paddock.Invalid)
		}
	}
	if s.Limits.Files == 0 {
		s.Limits.Files = was.Limits.Files
	}
	if m.about.Memory && s.Limits.Files != was.Limits.Files {
		return nil, fmt.Errorf("its limit of open files is %d, which memory depends on: %w", was.Limits.Files, paddock.Invalid)
	}
	return &s, nil
}

// fits reports whether memory can be restored in a box of this layout.
func (m *checkpoint) fits(l *box.Layout) error {
	if !m.about.Memory {
		return nil
	}
	was, now := m.about.Order.Layout.Config.GuestKernel.Binds, l.Config.GuestKernel.Binds
	names := func(list []boxinit.Bind) string {
		var words []string
		for _, b := range list {
			w := b.Target
			if b.Write {
				w += " (to write)"
			}
			words = append(words, w)
		}
		if len(words) == 0 {
			return "no mounts"
		}
		return "mounts at " + strings.Join(words, ", ")
	}
	if !slices.Equal(was, now) {
		return fmt.Errorf("the snapshot's memory is of a sandbox with %s, and the spec has %s: %w", names(was), names(now), paddock.Invalid)
	}
	if was, now := m.about.Order.Layout.User, l.ID.User; was.UID != now.UID || was.GID != now.GID {
		return fmt.Errorf("the snapshot's memory is of user %d, and the spec has %d: %w", was.UID, now.UID, paddock.Invalid)
	}
	if was, now := m.about.Order.Layout.Config.GuestKernel.Sudo, l.Config.GuestKernel.Sudo; was != now {
		word := map[bool]string{true: "with sudo", false: "without sudo"}
		return fmt.Errorf("the snapshot's memory is of a sandbox %s, and the spec is %s: %w", word[was], word[now], paddock.Invalid)
	}
	if err := Alike(m.about.Order.Layout.Config.GuestKernel, l.Config.GuestKernel); err != nil {
		return err
	}
	l.Config.GuestKernel.Token = m.about.Order.Layout.Config.GuestKernel.Token
	// Memory expects the private layer to begin in this way.
	l.Config.GuestKernel.Layered = m.about.Order.Layout.Config.GuestKernel.Layered
	return nil
}

// Alike refuses memory of a different machine.
func Alike(was, now *boxinit.GuestKernelConfig) error {
	if was.Shape == now.Shape {
		return nil
	}
	return fmt.Errorf("its memory is of another machine, %s; this is %s: %w", was.About, now.About, paddock.Unsupported)
}
