package step

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/snapshot"
)

// A Journal is a directory of records and of the contents from before. It is safe for concurrent use, also by several
// processes of one user.
type Journal struct {
	root  *os.Root
	store *snapshot.Store
	opts  Options

	// Of tests.
	noSwap bool              // as if file systems could not exchange names
	kept   func()            // called when what is to come of a path is in a proposal, before what is there
	built  func(temp string) // called before an undo brings back a file, with its path in the stage
}

// Parts of a journal's directory.
const (
	dirStore   = "store"
	dirRecords = "record" // a file for each record, named by its number
	dirLogs    = "log"    // a file for each step that goes on or whose recorder was killed
	dirTemp    = "temp"
	fileLock   = "lock"   // held while numbers are given, and while records come and go
	fileNumber = "number" // the last number
	fileUsage  = "usage"  // bytes of the store
)

// Open opens the journal in a directory, and creates the directory (0700) if it is missing. It must be out of reach of
// every sandbox.
func Open(dir string, o Options) (_ *Journal, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("open the journal of steps: %w", err)
		}
	}()
	o.Size = cmp.Or(o.Size, 4<<30)
	o.Age = cmp.Or(o.Age, 14*24*time.Hour)
	o.File = cmp.Or(o.File, 256<<20)
	o.Step = cmp.Or(o.Step, 2<<30)
	o.Changes = cmp.Or(o.Changes, 200_000)
	o.Log = cmp.Or(o.Log, 256<<20)
	if o.together == (load{}) {
		o.together = load{changes: togetherChanges, bytes: togetherBytes}
	}
	if o.Size < 0 || o.Age < 0 || o.File < 0 || o.Step < 0 || o.Changes < 0 || o.Log < 0 {
		return nil, fmt.Errorf("a limit is negative: %w", paddock.Invalid)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil { //nolint:gosec // a directory of the user's own
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, root.Close())
		}
	}()
	st, err := root.Stat(".")
	if err != nil {
		return nil, err
	}
	if own, ok := st.Sys().(*syscall.Stat_t); !ok || own.Uid != uint32(os.Geteuid()) || st.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the directory %s is not this user's alone: chown it, and chmod it to 0700: %w", dir, paddock.Denied)
	}
	for _, name := range []string{dirRecords, dirLogs, dirTemp} {
		if err := root.Mkdir(name, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
	}
	store, err := snapshot.Open(filepath.Join(dir, dirStore), snapshot.Options{Sync: o.Sync})
	if err != nil {
		return nil, err
	}
	return &Journal{root: root, store: store, opts: o, kept: func() {}, built: func(string) {}}, nil
}

// Close closes the journal. Recorders of it must have ended.
func (j *Journal) Close() error { return errors.Join(j.store.Close(), j.root.Close()) }

// pause is between two looks at whether the lock is free.
const pause = 2 * time.Millisecond

// alone waits for the lock of the journal, and calls do with it.
func (j *Journal) alone(ctx context.Context, do func() error) error {
	f, err := j.root.OpenFile(fileLock, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		held, err := tryLock(f)
		if err != nil {
			return err
		}
		if held {
			return do()
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(pause):
		}
	}
}

// tryLock locks an open file until it is closed, unless somebody else has it locked.
func tryLock(f *os.File) (bool, error) {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case err == nil:
			return true, nil
		case errors.Is(err, syscall.EWOULDBLOCK):
			return false, nil
		case !errors.Is(err, syscall.EINTR):
			return false, err
		}
	}
}

// count reads a number that the journal keeps.
func (j *Journal) count(name string) int64 {
	b, err := j.root.ReadFile(name)
	if err != nil || len(b) != 8 {
		return 0
	}
	return max(0, int64(binary.BigEndian.Uint64(b)))
}

func (j *Journal) setCount(name string, n int64) error {
	f, err := j.root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(binary.BigEndian.AppendUint64(nil, uint64(n)), 0)
	if err == nil && j.opts.Sync {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// numbers lists those of the files in a directory, in order.
func (j *Journal) numbers(dir string) ([]int64, error) {
	d, err := j.root.Open(dir)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	var all []int64
	for _, name := range names {
		if n, err := strconv.ParseInt(name, 10, 64); err == nil && n > 0 && strconv.FormatInt(n, 10) == name {
			all = append(all, n)
		}
	}
	slices.Sort(all)
	return all, err
}

func recordPath(n int64) string { return path.Join(dirRecords, strconv.FormatInt(n, 10)) }

func logPath(n int64) string { return path.Join(dirLogs, strconv.FormatInt(n, 10)) }

// snapshot names the contents of a step.
func (*Journal) snapshot(n int64) paddock.SnapshotID {
	return paddock.SnapshotID("step-" + strconv.FormatInt(n, 10))
}

// reserve is how much of the size is free for a step that begins.
func (j *Journal) reserve() int64 { return min(j.opts.Step, j.opts.Size/4) }

// Begin begins a step: it gives it a number, and opens its roots. It does not read the directories. It recovers the steps of
// dead recorders first, and if the journal is nearly full, it trims it.
func (j *Journal) Begin(ctx context.Context, a About) (*Recorder, error) {
	return j.begin(ctx, a, true)
}

// begin is Begin. An undo does not trim, because it needs the contents of old steps.
func (j *Journal) begin(ctx context.Context, a About, trim bool) (_ *Recorder, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("begin a step: %w", err)
		}
	}()
	if len(a.Roots) == 0 || len(a.Roots) > maxRoots {
		return nil, fmt.Errorf("%d directories; a step has 1 to %d: %w", len(a.Roots), maxRoots, paddock.Invalid)
	}
	if a.Start.IsZero() {
		a.Start = time.Now()
	}
	h := header{
		Version: logVersion, Sandbox: cut(a.Sandbox), Life: cut(a.Life), Tier: a.Tier, Kind: cut(a.Kind), Command: command(a.Command),
		Start: a.Start.Round(0), Undoes: a.Undoes[:min(len(a.Undoes), maxList)],
	}
	var trees []*tree
	defer func() {
		if err != nil {
			for _, t := range trees {
				t.close()
			}
		}
	}()
	for _, root := range a.Roots {
		if len(root.Path) > maxPath || len(root.Target) > maxPath || !filepath.IsAbs(string(root.Path)) {
			return nil, fmt.Errorf("the directory %q is not an absolute path: %w", root.Path, paddock.Invalid)
		}
		t, err := openTree(string(root.Path))
		if err != nil {
			return nil, err
		}
		trees = append(trees, t)
		h.Roots = append(h.Roots, Root{Path: root.Path, Target: root.Target, Ino: t.ino, Dev: t.dev})
	}
	if trim {
		// Soon, so that what the user does later is not taken for the step's, and so that dead drafts are counted. What fails
		// here fails again, and is told, when somebody asks for the steps.
		_, _ = j.Recover(ctx)
	}
	open, err := j.occupied()
	if err != nil {
		return nil, err
	}
	if used := j.count(fileUsage) + open; trim && used > j.opts.Size-j.reserve() {
		if _, _, err := j.Trim(ctx); err != nil && !errors.Is(err, paddock.Conflict) { // another one trims
			return nil, err
		}
	}
	r, err := j.start(ctx, h)
	if err != nil {
		return nil, err
	}
	r.trees, r.strict = trees, a.Strict || j.opts.Strict
	return r, nil
}

// command bounds the arguments of a command.
func command(args []string) []Text {
	var all []Text
	left := maxCommand
	for _, a := range args {
		if left -= len(a) + 1; left < 0 {
			return append(all, "…")
		}
		all = append(all, Text(a))
	}
	return all
}

// start gives a step its number, and makes its log and its draft.
func (j *Journal) start(ctx context.Context, h header) (r *Recorder, err error) {
	err = j.alone(ctx, func() error {
		last := j.count(fileNumber)
		for _, dir := range []string{dirRecords, dirLogs} {
			all, err := j.numbers(dir)
			if err != nil {
				return err
			}
			if len(all) > 0 {
				last = max(last, all[len(all)-1])
			}
		}
		h.Number = last + 1
		if err := j.setCount(fileNumber, h.Number); err != nil {
			return err
		}
		r = newRecorder(j, h)
		r.path = logPath(h.Number)
		f, err := j.root.OpenFile(r.path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		undo := func(err error) error { return errors.Join(err, f.Close(), j.root.Remove(r.path)) }
		if held, err := tryLock(f); err != nil || !held {
			return undo(cmp.Or(err, error(paddock.Conflict)))
		}
		r.log = &logFile{f: f, most: j.opts.Log, sync: j.opts.Sync}
		if r.draft, err = j.store.Draft(j.snapshot(h.Number)); err != nil {
			return undo(err)
		}
		if err := cmp.Or(r.log.add(true, h), j.settle(dirLogs)); err != nil {
			return errors.Join(undo(err), r.draft.Discard())
		}
		r.log.share(r.take)
		return nil
	})
	if full(err) {
		err = fmt.Errorf("%w: free space on the disk of the journal: %w", err, paddock.Exhausted)
	}
	return r, err
}

// settle makes the names in a directory survive a power failure.
func (j *Journal) settle(dir string) error {
	if !j.opts.Sync {
		return nil
	}
	d, err := j.root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// A record on the disk is text. The first line has a name with the version, and the SHA-256 of all that follows it. The
// second line has the record, and then each change and each Left has a line. All are in JSON.
const (
	recordMagic = "paddock step 1 "
	headSize    = len(recordMagic) + 2*sha256.Size + 1
	maxHead     = 64 << 20 // of the second line: all lists with texts of the largest size, escaped
)

// put writes a record to its place.
func (j *Journal) put(ctx context.Context, rec *Record, fresh int64) error {
	rec.Changed, rec.Missed = len(rec.Changes), len(rec.Left)
	name := strconv.FormatInt(rec.Number, 10)
	temp := path.Join(dirTemp, name)
	f, err := j.root.OpenFile(temp, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	size, err := writeRecord(f, rec)
	if err == nil && j.opts.Sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, j.root.Remove(temp))
	}
	return j.alone(context.WithoutCancel(ctx), func() error {
		if err := cmp.Or(j.root.Rename(temp, recordPath(rec.Number)), j.settle(dirRecords)); err != nil {
			return err
		}
		_ = j.setCount(fileUsage, j.count(fileUsage)+fresh+size) // Trim counts again
		return nil
	})
}

func writeRecord(f io.WriteSeeker, rec *Record) (size int64, err error) {
	sum := sha256.New()
	w := bufio.NewWriterSize(f, 256<<10)
	out := counted{w: io.MultiWriter(w, sum)}
	if _, err := w.Write(make([]byte, headSize)); err != nil {
		return 0, err
	}
	e := json.NewEncoder(&out)
	if err := e.Encode(rec); err != nil {
		return 0, err
	}
	for i := range rec.Changes {
		if err := e.Encode(&rec.Changes[i]); err != nil {
			return 0, err
		}
	}
	for i := range rec.Left {
		if err := e.Encode(&rec.Left[i]); err != nil {
			return 0, err
		}
	}
	if err := w.Flush(); err != nil {
		return 0, err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return 0, err
	}
	rec.Digest = hex.EncodeToString(sum.Sum(nil))
	_, err = io.WriteString(f, recordMagic+rec.Digest+"\n")
	return out.n + int64(headSize), err
}

type counted struct {
	w io.Writer
	n int64
}

func (c *counted) Write(b []byte) (int, error) {
	c.n += int64(len(b))
	return c.w.Write(b)
}

// readRecord reads a record, and its changes if whole. It trusts nothing.
func readRecord(in io.Reader, whole bool, most int) (*Record, error) {
	damaged := func(format string, args ...any) error {
		return fmt.Errorf("the record is damaged: "+format+": %w", append(args, paddock.Invalid)...)
	}
	first := make([]byte, headSize)
	if _, err := io.ReadFull(in, first); err != nil {
		return nil, damaged("it is cut off")
	}
	digest, ok := bytes.CutPrefix(first[:headSize-1], []byte(recordMagic))
	if !ok || first[headSize-1] != '\n' {
		if bytes.HasPrefix(first, []byte("paddock step ")) {
			return nil, fmt.Errorf("a record of another version: use a newer paddock: %w", paddock.Unsupported)
		}
		return nil, damaged("it begins with %q", first[:13])
	}
	sum := sha256.New()
	r := bufio.NewReaderSize(io.TeeReader(in, sum), 64<<10)
	next := func(into any, most int) error {
		text, err := readLine(r, most)
		if err != nil {
			return damaged("%v", err)
		}
		if err := json.Unmarshal(text, into); err != nil {
			return damaged("%v", err)
		}
		return nil
	}
	rec := &Record{}
	if err := next(rec, maxHead); err != nil {
		return nil, err
	}
	rec.Digest = string(digest)
	if rec.Number <= 0 || len(rec.Roots) == 0 || len(rec.Roots) > maxRoots || rec.Changed < 0 || rec.Missed < 0 {
		return nil, damaged("its numbers")
	}
	if !whole {
		return rec, nil
	}
	if rec.Changed > most || rec.Missed > most {
		return nil, damaged("it has %d changes and %d others: %v", rec.Changed, rec.Missed, paddock.Exhausted)
	}
	for range rec.Changed {
		var c Change
		if err := next(&c, maxLine); err != nil {
			return nil, err
		}
		if err := c.valid(len(rec.Roots)); err != nil {
			return nil, damaged("%v", err)
		}
		rec.Changes = append(rec.Changes, c)
	}
	for range rec.Missed {
		var l Left
		if err := next(&l, maxLine); err != nil {
			return nil, err
		}
		if l.Root < 0 || l.Root >= len(rec.Roots) {
			return nil, damaged("root %d", l.Root)
		}
		rec.Left = append(rec.Left, l)
	}
	if _, err := r.ReadByte(); err != io.EOF {
		return nil, damaged("something follows its end")
	}
	if hex.EncodeToString(sum.Sum(nil)) != rec.Digest {
		return nil, damaged("its checksum is wrong")
	}
	return rec, nil
}

func (c *Change) valid(roots int) error {
	if c.Root < 0 || c.Root >= roots || c.FromRoot < 0 || c.FromRoot >= roots {
		return fmt.Errorf("a change in root %d: %w", c.Root, paddock.Invalid)
	}
	if err := validPath(string(c.Path)); err != nil {
		return err
	}
	if c.Moved {
		if err := validPath(string(c.From)); err != nil {
			return err
		}
		if related(key{c.Root, string(c.Path)}, key{c.FromRoot, string(c.From)}) && c.Path == c.From {
			return fmt.Errorf("%q is moved to itself: %w", c.Path, paddock.Invalid)
		}
	}
	for _, s := range []*State{&c.Before, &c.After} {
		switch s.Kind {
		case Absent, File, Dir, Symlink, FIFO, Socket, Device:
		default:
			return fmt.Errorf("a file of the kind %q: %w", s.Kind, paddock.Invalid)
		}
		if s.Size < 0 || s.Mode&^0o7777 != 0 || s.Kind == Symlink && (s.Target == "" || len(s.Target) > maxPath || strings.IndexByte(string(s.Target), 0) >= 0) {
			return fmt.Errorf("the state of %q: %w", c.Path, paddock.Invalid)
		}
	}
	if c.Kept < 0 || c.Kept > 1<<31-1 || c.Kept > 0 && c.Before.Kind != File || c.Pack < 0 || c.Pack > packRoom+packMost || c.Pack > 0 && c.Kept == 0 || c.Moved && (!c.Before.Exists() || !c.After.Exists()) {
		return fmt.Errorf("the change of %q: %w", c.Path, paddock.Invalid)
	}
	if c.BaseKept < 0 || c.BaseKept > 1<<31-1 || c.BaseKept > 0 && (c.After.Kind != File || c.After.Size > baseText) || c.BasePack < 0 || c.BasePack > packRoom+packMost || c.BasePack > 0 && c.BaseKept == 0 {
		return fmt.Errorf("the base of %q: %w", c.Path, paddock.Invalid)
	}
	return nil
}

// read reads the record of a number.
func (j *Journal) read(n int64, whole bool) (*Record, error) {
	f, err := j.root.OpenFile(recordPath(n), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("step %d: %w", n, paddock.NotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("step %d: %w", n, err)
	}
	defer f.Close()
	rec, err := readRecord(f, whole, maxChanges)
	if err == nil && rec.Number != n {
		err = fmt.Errorf("it is that of step %d: %w", rec.Number, paddock.Invalid)
	}
	if err != nil {
		return nil, fmt.Errorf("step %d: %w", n, err)
	}
	return rec, nil
}

// maxChanges bounds what is read, whatever bound the journal had that wrote it.
const maxChanges = 4_000_000

// Read returns a record.
func (j *Journal) Read(ctx context.Context, number int64) (*Record, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	return j.read(number, true)
}

// List returns the records that a filter selects, the oldest first, without Changes and Left. The error tells about
// records that cannot be read; the result holds the others.
func (j *Journal) List(ctx context.Context, f Filter) ([]Record, error) {
	all, err := j.numbers(dirRecords)
	if err != nil {
		return nil, fmt.Errorf("list steps: %w", err)
	}
	var list []Record
	var errs []error
	for i := len(all) - 1; i >= 0 && (f.Last <= 0 || len(list) < f.Last); i-- {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		n := all[i]
		if n < f.From || f.To > 0 && n > f.To {
			continue
		}
		rec, err := j.read(n, false)
		switch {
		case errors.Is(err, paddock.NotFound): // it was just removed
		case err != nil:
			errs = append(errs, err)
		case f.selects(rec):
			if f.Lean {
				rec.lean()
			}
			list = append(list, *rec)
		}
	}
	slices.Reverse(list)
	return list, errors.Join(errs...)
}

func (f *Filter) selects(rec *Record) bool {
	if f.Sandbox != "" && rec.Sandbox != f.Sandbox || f.Life != "" && rec.Life != f.Life || rec.End.Before(f.Since) {
		return false
	}
	return f.Directory == "" || slices.ContainsFunc(rec.Roots, func(r Root) bool {
		return within(string(r.Path), f.Directory) || within(f.Directory, string(r.Path))
	})
}

// within reports whether a path of the host is a directory or in it.
func within(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir) && strings.HasPrefix(p[len(dir):], "/")
}

// Recover makes records of the steps whose recorder was killed. They are Incomplete.
func (j *Journal) Recover(ctx context.Context) ([]Record, error) {
	all, err := j.numbers(dirLogs)
	if err != nil {
		return nil, fmt.Errorf("recover steps: %w", err)
	}
	if err := j.sweep(); err != nil {
		return nil, fmt.Errorf("recover steps: %w", err)
	}
	var list []Record
	var errs []error
	for _, n := range all {
		if err := context.Cause(ctx); err != nil {
			return list, errors.Join(append(errs, err)...)
		}
		rec, err := j.recover(ctx, n)
		if err != nil {
			errs = append(errs, fmt.Errorf("recover step %d: %w", n, err))
		} else if rec != nil {
			list = append(list, *rec)
		}
	}
	return list, errors.Join(errs...)
}

// sweep removes packs and rooms of steps that have ended. The log of a step is made before them.
func (j *Journal) sweep() error {
	d, err := j.root.Open(dirLogs)
	if err != nil {
		return err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	for _, name := range names {
		if log, ok := stepOfFile(name); ok {
			if _, gone := j.root.Lstat(path.Join(dirLogs, log)); errors.Is(gone, fs.ErrNotExist) {
				err = errors.Join(err, j.root.RemoveAll(path.Join(dirLogs, name)))
			}
		}
	}
	return err
}

// recover makes a record of a dead recorder. If that fails twice, for no lack of room, it makes one of what the log says alone.
func (j *Journal) recover(ctx context.Context, n int64) (*Record, error) {
	rec, ends, err := j.revive(ctx, n, false)
	failed := path.Join(dirTemp, "failed-"+strconv.FormatInt(n, 10))
	if err == nil || !ends || context.Cause(ctx) != nil || full(err) {
		if err == nil && ends {
			_ = j.root.Remove(failed)
		}
		return rec, err
	}
	f, again := j.root.OpenFile(failed, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if again == nil {
		return nil, errors.Join(err, f.Close())
	}
	if !errors.Is(again, fs.ErrExist) {
		return nil, errors.Join(err, again)
	}
	rec, _, err = j.revive(ctx, n, true)
	if err == nil {
		_ = j.root.Remove(failed)
	}
	return rec, err
}

// revive makes a record of a dead recorder. ends means that the log and the draft could be read, so that the step ends.
func (j *Journal) revive(ctx context.Context, n int64, rough bool) (rec *Record, ends bool, err error) {
	r, err := j.resume(ctx, n)
	if r == nil || err != nil {
		return nil, false, err
	}
	r.rough = rough
	rec, err = r.End(ctx, Outcome{Exit: -1})
	return rec, true, err
}

// resume makes a recorder of the log of a dead one. Without an error there may be none.
func (j *Journal) resume(ctx context.Context, n int64) (*Recorder, error) {
	var f *os.File
	err := j.alone(ctx, func() (err error) {
		f, err = j.root.OpenFile(logPath(n), os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if err != nil {
			return err
		}
		held, err := tryLock(f)
		if err == nil && !held {
			err = fs.ErrNotExist // its recorder lives
		}
		if err != nil {
			return errors.Join(err, f.Close())
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if _, err := j.root.Lstat(logPath(n)); err != nil { // it ended in between
		return nil, f.Close()
	}
	draft, err := j.store.Resume(j.snapshot(n))
	if err != nil && !errors.Is(err, paddock.NotFound) {
		return nil, errors.Join(err, f.Close())
	}
	drop := func() error {
		if draft != nil {
			err = draft.Discard()
		}
		if gone := j.root.Remove(packPath(n)); !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
		return errors.Join(err, j.root.Remove(logPath(n)), j.release(n), f.Close())
	}
	err = nil
	if _, err := j.root.Lstat(recordPath(n)); err == nil { // only the log was still there
		return nil, drop()
	}
	var r *Recorder
	broken := readLog(f, func(h *header) error {
		if h.Number != n {
			return fmt.Errorf("it is that of step %d: %w", h.Number, paddock.Invalid)
		}
		r = newRecorder(j, *h)
		return nil
	}, func(e *entry) error {
		if err := e.valid(len(r.head.Roots)); err != nil {
			return err
		}
		r.apply(e)
		return nil
	})
	if errors.Is(broken, io.EOF) || broken == nil && r == nil { // it was killed before its beginning was acknowledged
		return nil, drop()
	}
	if broken != nil {
		if draft != nil {
			broken = errors.Join(broken, draft.Leave())
		}
		return nil, errors.Join(broken, f.Close())
	}
	r.lost = true
	r.fresh = j.count(roomPath(n)) // or less; Trim counts again
	if i, err := f.Stat(); err == nil {
		r.until = i.ModTime().Add(deadAfter).UnixNano()
	}
	r.path, r.log, r.draft = logPath(n), &logFile{f: f}, draft
	if hasGap(f) {
		r.distrust()
	}
	for i, root := range r.head.Roots {
		t, err := openTree(string(root.Path))
		if err != nil {
			continue // its changes are not compared with anything
		}
		if t.ino != root.Ino {
			t.close()
			continue
		}
		r.trees[i] = t
	}
	r.doubt()
	if r.draft == nil { // the contents are a snapshot already
		if err := r.regain(ctx); err != nil {
			return nil, errors.Join(err, r.close(false))
		}
	}
	if err := r.unpack(); err != nil {
		return nil, errors.Join(err, r.close(false))
	}
	return r, nil
}

// deadAfter is how long after the last line of a log a change may be the step's, if its recorder was killed.
const deadAfter = 10 * time.Second

// doubt takes back the last changes that were told and, as the disk shows, not made before the process was killed.
func (r *Recorder) doubt() {
	for i := len(r.recent) - 1; i >= max(0, len(r.recent)-maxRecent); i-- {
		x := r.recent[i]
		from := x.at
		var ino uint64
		switch x.e.Op {
		case opMove:
			from, ino = key{x.e.FromRoot, string(x.e.From)}, x.e.Inos[0]
		case opRemove:
			ino = x.e.Inos[0]
		}
		if ino == 0 {
			continue
		}
		if now, err := r.look(from); err == nil && now.Ino == ino {
			r.recent = r.recent[:i]
			x.back()
		} else {
			return // those before it were made
		}
	}
}

// distrust forgets where names came from, because some moves and creations may be missing. What was saved stays.
func (r *Recorder) distrust() {
	tops := newNames(len(r.head.Roots))
	for _, top := range r.names.tops {
		top.walk(func(n *node) {
			if n.up != nil && (n.is == made || n.is == original) {
				at := n.at()
				r.apply(&entry{Op: opLeft, Root: at.root, Path: Text(at.path), Why: "it is not known what happened to it, because the log was full"})
			}
		})
	}
	r.names = tops
}

// Trim removes records that are too old, and the oldest ones of the sandboxes that have most until the contents fit into
// Options.Size with room for a step. It returns the numbers of the removed records and how many bytes were freed.
func (j *Journal) Trim(ctx context.Context) (removed []int64, freed int64, err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("trim the journal of steps: %w", err)
		}
	}()
	list, broken := j.List(ctx, Filter{Lean: true})
	if list == nil && broken != nil {
		return nil, 0, broken
	}
	limit := time.Now().Add(-j.opts.Age)
	used, err := j.usage(ctx)
	if err != nil {
		return nil, 0, err
	}
	for len(list) > 0 {
		open, err := j.occupied()
		if err != nil {
			return removed, freed, err
		}
		var out []int64
		for n := 0; n < len(list) && list[n].End.Before(limit); n++ {
			out = append(out, list[n].Number)
		}
		if len(out) == 0 {
			out = j.victims(list, used+open-(j.opts.Size-j.reserve()))
		}
		if len(out) == 0 {
			break
		}
		for _, n := range out {
			if err := j.remove(ctx, n); err != nil {
				return removed, freed, err
			}
			removed = append(removed, n)
		}
		list = slices.DeleteFunc(list, func(rec Record) bool {
			_, gone := slices.BinarySearch(out, rec.Number)
			return gone
		})
		got, err := j.store.Collect(ctx)
		freed += got
		if err != nil {
			return removed, freed, err
		}
		if used, err = j.usage(ctx); err != nil {
			return removed, freed, err
		}
	}
	err = j.alone(ctx, func() error { return j.setCount(fileUsage, used) })
	return removed, freed, errors.Join(err, broken)
}

// usage counts the bytes of the store and of the records.
func (j *Journal) usage(ctx context.Context) (int64, error) {
	n, err := j.store.Usage(ctx)
	if err != nil {
		return 0, err
	}
	all, err := j.numbers(dirRecords)
	for _, k := range all {
		if i, err := j.root.Lstat(recordPath(k)); err == nil {
			n += i.Size()
		}
	}
	return n, err
}

// Remove removes records. A missing record is not an error. [Journal.Trim] frees the contents that only they had.
func (j *Journal) Remove(ctx context.Context, numbers ...int64) error {
	for _, n := range numbers {
		if err := j.remove(ctx, n); err != nil {
			return fmt.Errorf("remove step %d: %w", n, err)
		}
	}
	return nil
}

func (j *Journal) remove(ctx context.Context, n int64) error {
	return j.alone(ctx, func() error {
		err := j.root.Remove(recordPath(n))
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		if err != nil {
			return err
		}
		return j.store.Remove(j.snapshot(n))
	})
}

// contents reads which contents a record has, by number.
func (j *Journal) contents(ctx context.Context, rec *Record) (map[int]snapshot.Contents, error) {
	if rec.Snapshot == "" {
		return nil, nil
	}
	x, err := j.store.Read(j.snapshot(rec.Number))
	if err != nil {
		return nil, err
	}
	defer x.Close()
	all := map[int]snapshot.Contents{}
	for name, c := range x.Held(ctx) {
		n, err := strconv.ParseInt(name, 16, 32)
		if err != nil {
			return nil, fmt.Errorf("contents with the name %q: %w", name, paddock.Invalid)
		}
		all[int(n)] = c
	}
	return all, x.Err()
}

// stock reads which contents a record has.
func (j *Journal) stock(ctx context.Context, rec *Record) (*stock, error) {
	has, err := j.contents(ctx, rec)
	return &stock{store: j.store, has: has}, err
}

// regain finds out which contents of a dead recorder are in its snapshot.
func (r *Recorder) regain(ctx context.Context) error {
	all, err := r.j.contents(ctx, &Record{Number: r.number, Snapshot: r.j.snapshot(r.number)})
	if err != nil && !errors.Is(err, paddock.NotFound) {
		return err
	}
	for _, k := range r.order {
		if s := r.saved[k]; s.kept > 0 {
			number := s.kept
			if s.pack > 0 {
				number = 0
			}
			if c, ok := all[number]; !ok {
				s.kept, s.pack = 0, 0
			} else if s.pack == 0 {
				s.contents = &c
			}
		}
	}
	r.stored = true
	return nil
}
