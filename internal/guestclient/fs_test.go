//go:build linux

package guestclient_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest"
	"github.com/paddock-sandbox/paddock/internal/guest/guesttest"
)

// box gives the files of a guest in this process, and an empty directory.
func box(tb testing.TB) (paddock.FS, string) {
	tb.Helper()
	dir, err := filepath.EvalSymlinks(tb.TempDir())
	if err != nil {
		tb.Fatal(err)
	}
	return guesttest.New(tb, guest.Options{}).FS(), dir
}

func put(tb testing.TB, fsys paddock.FS, name string, data []byte, o paddock.CreateOptions) {
	tb.Helper()
	w, err := fsys.Create(tb.Context(), name, o)
	if err != nil {
		tb.Fatal(err)
	}
	if _, err := w.Write(data); err != nil {
		tb.Fatal(err)
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
}

func get(tb testing.TB, fsys paddock.FS, name string, o paddock.OpenOptions) []byte {
	tb.Helper()
	r, err := fsys.Open(tb.Context(), name, o)
	if err != nil {
		tb.Fatal(err)
	}
	data, err := io.ReadAll(r)
	if err != nil {
		tb.Fatal(err)
	}
	if err := r.Close(); err != nil {
		tb.Fatal(err)
	}
	return data
}

func wantKind(tb testing.TB, err error, want paddock.Kind) {
	tb.Helper()
	if err == nil || paddock.KindOf(err) != want {
		tb.Errorf("error %v of kind %q, want kind %q", err, paddock.KindOf(err), want)
	}
}

func noise(n int) []byte {
	data := make([]byte, n)
	x := uint32(1)
	for i := range data {
		x = x*1664525 + 1013904223
		data[i] = byte(x >> 24)
	}
	return data
}

func TestFilesArriveAsTheyWereSent(t *testing.T) {
	fsys, dir := box(t)
	for _, size := range []int{0, 1, 4095, 256<<10 - 1, 256 << 10, 256<<10 + 1, 3 << 20} {
		name := fmt.Sprintf("%s/%d", dir, size)
		data := noise(size)
		put(t, fsys, name, data, paddock.CreateOptions{})
		if got := get(t, fsys, name, paddock.OpenOptions{}); !bytes.Equal(got, data) {
			t.Errorf("%d bytes: got %d other ones", size, len(got))
		}
		if info, err := fsys.Stat(t.Context(), name); err != nil || info.Size != int64(size) || info.Mode != 0o644 {
			t.Errorf("%d bytes: %+v, %v", size, info, err)
		}
	}
}

func TestNamesAreBytes(t *testing.T) {
	fsys, dir := box(t)
	for _, base := range []string{
		"with space", "new\nline", "tab\t", "invalid \xff\xfe utf-8", "日本語", "-rf", "…", "...", "*", "'\"`$(x)", "\x01\x7f",
		strings.Repeat("n", 255),
	} {
		name := dir + "/" + base
		put(t, fsys, name, []byte(base), paddock.CreateOptions{})
		if got := get(t, fsys, name, paddock.OpenOptions{}); string(got) != base {
			t.Errorf("%q holds %q", base, got)
		}
		if info, err := fsys.Stat(t.Context(), name); err != nil || info.Name != name {
			t.Errorf("%q is %+v, %v", base, info, err)
		}
		found := false
		for info, err := range fsys.List(t.Context(), dir, 1) {
			if err != nil {
				t.Fatal(err)
			}
			found = found || info.Name == name
		}
		if !found {
			t.Errorf("%q is not listed", base)
		}
		if err := fsys.Rename(t.Context(), name, name[:len(name)-1]+"~"); err != nil {
			t.Errorf("rename %q: %v", base, err)
		}
		if err := fsys.Remove(t.Context(), name[:len(name)-1]+"~", false); err != nil {
			t.Errorf("remove %q: %v", base, err)
		}
	}
}

func TestImpossibleNamesAreInvalid(t *testing.T) {
	fsys, dir := box(t)
	ctx := t.Context()
	for _, name := range []string{
		"", "relative", "./x", dir + "/a\x00b", dir + "/" + strings.Repeat("n", 256), "/" + strings.Repeat("n/", 2048),
	} {
		calls := map[string]func() error{
			"open":    func() error { _, err := fsys.Open(ctx, name, paddock.OpenOptions{}); return err },
			"create":  func() error { _, err := fsys.Create(ctx, name, paddock.CreateOptions{}); return err },
			"stat":    func() error { _, err := fsys.Stat(ctx, name); return err },
			"list":    func() error { _, err := list(ctx, fsys, name, 1); return err },
			"mkdir":   func() error { return fsys.Mkdir(ctx, name, paddock.MkdirOptions{}) },
			"rename":  func() error { return fsys.Rename(ctx, name, dir+"/x") },
			"to":      func() error { return fsys.Rename(ctx, dir, name) },
			"remove":  func() error { return fsys.Remove(ctx, name, false) },
			"all":     func() error { return fsys.Remove(ctx, name, true) },
			"chmod":   func() error { return fsys.Chmod(ctx, name, 0o600) },
			"symlink": func() error { return fsys.Symlink(ctx, "x", name) },
			"watch":   func() error { _, err := fsys.Watch(ctx, name, paddock.WatchOptions{}); return err },
		}
		for what, call := range calls {
			if err := call(); paddock.KindOf(err) != paddock.Invalid {
				t.Errorf("%s %.20q: %v", what, name, err)
			}
		}
	}
	for _, target := range []string{"", "a\x00", strings.Repeat("n", 4096)} {
		wantKind(t, fsys.Symlink(ctx, target, dir+"/l"), paddock.Invalid)
	}
}

func list(ctx context.Context, fsys paddock.FS, name string, depth int) ([]string, error) {
	var names []string
	for info, err := range fsys.List(ctx, name, depth) {
		if err != nil {
			return names, err
		}
		names = append(names, strings.TrimPrefix(info.Name, name+"/"))
	}
	slices.Sort(names)
	return names, nil
}

func TestErrorsHaveTheirKind(t *testing.T) {
	fsys, dir := box(t)
	ctx := t.Context()
	file, full, empty := dir+"/file", dir+"/full", dir+"/empty"
	put(t, fsys, file, []byte("x"), paddock.CreateOptions{})
	put(t, fsys, full+"/x", []byte("x"), paddock.CreateOptions{Parents: true})
	if err := fsys.Mkdir(ctx, empty, paddock.MkdirOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(dir+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	if err := fsys.Symlink(ctx, "loop", dir+"/loop"); err != nil {
		t.Fatal(err)
	}
	open := func(name string) error { _, err := fsys.Open(ctx, name, paddock.OpenOptions{}); return err }
	create := func(name string, o paddock.CreateOptions) error { _, err := fsys.Create(ctx, name, o); return err }
	for what, row := range map[string]struct {
		err  error
		want paddock.Kind
	}{
		"open what is not there":          {open(dir + "/none"), paddock.NotFound},
		"open a directory":                {open(dir), paddock.Invalid},
		"open a FIFO":                     {open(dir + "/fifo"), paddock.Invalid},
		"open through a file":             {open(file + "/x"), paddock.Invalid},
		"open a file as a directory":      {open(file + "/"), paddock.Invalid},
		"open a loop of links":            {open(dir + "/loop"), paddock.Invalid},
		"open a terminal":                 {open("/dev/ptmx"), paddock.Invalid},
		"create a directory":              {create(dir, paddock.CreateOptions{}), paddock.Invalid},
		"create /":                        {create("/", paddock.CreateOptions{}), paddock.Invalid},
		"create with a slash at the end":  {create(dir+"/new/", paddock.CreateOptions{}), paddock.Invalid},
		"create in a missing directory":   {create(dir+"/none/x", paddock.CreateOptions{}), paddock.NotFound},
		"create what is there, exclusive": {create(file, paddock.CreateOptions{Exclusive: true}), paddock.Exists},
		"create a link, exclusive":        {create(dir+"/loop", paddock.CreateOptions{Exclusive: true}), paddock.Exists},
		"create a FIFO":                   {create(dir+"/fifo", paddock.CreateOptions{}), paddock.Invalid},
		"create set-uid":                  {create(dir+"/s", paddock.CreateOptions{Mode: 0o755 | fs.ModeSetuid}), paddock.Denied},
		"create a device":                 {create(dir+"/s", paddock.CreateOptions{Mode: 0o755 | fs.ModeDevice}), paddock.Invalid},
		"create under a file":             {create(file+"/a/b", paddock.CreateOptions{Parents: true}), paddock.Invalid},
		"mkdir what is there":             {fsys.Mkdir(ctx, empty, paddock.MkdirOptions{}), paddock.Exists},
		"mkdir where a file is":           {fsys.Mkdir(ctx, file, paddock.MkdirOptions{Parents: true}), paddock.Exists},
		"mkdir in a missing directory":    {fsys.Mkdir(ctx, dir+"/none/x", paddock.MkdirOptions{}), paddock.NotFound},
		"remove what is not there":        {fsys.Remove(ctx, dir+"/none", false), paddock.NotFound},
		"remove a full directory":         {fsys.Remove(ctx, full, false), paddock.Conflict},
		"remove /":                        {fsys.Remove(ctx, "/", true), paddock.Invalid},
		"remove ..":                       {fsys.Remove(ctx, empty+"/..", true), paddock.Invalid},
		"rename what is not there":        {fsys.Rename(ctx, dir+"/none", dir+"/x"), paddock.NotFound},
		"rename a file over a directory":  {fsys.Rename(ctx, file, empty), paddock.Invalid},
		"rename a directory over a full":  {fsys.Rename(ctx, empty, full), paddock.Conflict},
		"rename a directory into itself":  {fsys.Rename(ctx, full, full+"/y"), paddock.Invalid},
		"chmod set-gid":                   {fsys.Chmod(ctx, file, 0o755|fs.ModeSetgid), paddock.Denied},
		"chmod what is not there":         {fsys.Chmod(ctx, dir+"/none", 0o600), paddock.NotFound},
		"symlink where something is":      {fsys.Symlink(ctx, "x", file), paddock.Exists},
		"stat what is not there":          {func() error { _, err := fsys.Stat(ctx, dir+"/none"); return err }(), paddock.NotFound},
		"list a file":                     {func() error { _, err := list(ctx, fsys, file, 1); return err }(), paddock.Invalid},
		"list what is not there":          {func() error { _, err := list(ctx, fsys, dir+"/none", 1); return err }(), paddock.NotFound},
		"list with depth 0":               {func() error { _, err := list(ctx, fsys, dir, 0); return err }(), paddock.Invalid},
		"watch what is not there":         {func() error { _, err := fsys.Watch(ctx, dir+"/none", paddock.WatchOptions{}); return err }(), paddock.NotFound},
	} {
		t.Run(what, func(t *testing.T) { wantKind(t, row.err, row.want) })
	}
	for what, err := range map[string]error{
		"remove what is not there, all": fsys.Remove(ctx, dir+"/none/at/all", true),
		"mkdir /, parents":              fsys.Mkdir(ctx, "/", paddock.MkdirOptions{Parents: true}),
		"mkdir what is there, parents":  fsys.Mkdir(ctx, empty, paddock.MkdirOptions{Parents: true}),
		"rename over a file":            fsys.Rename(ctx, full+"/x", file),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestAFullDiskIsExhausted(t *testing.T) {
	fsys, _ := box(t)
	w, err := fsys.Create(t.Context(), "/dev/full", paddock.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(w, bytes.NewReader(make([]byte, 8<<20)))
	wantKind(t, err, paddock.Exhausted)
	if err == nil || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("no words for it: %v", err)
	}
	wantKind(t, w.Close(), paddock.Exhausted)

	w, err = fsys.Create(t.Context(), "/dev/full", paddock.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, _ = w.Write([]byte("little")) // may be taken before the disk says no
	wantKind(t, w.Close(), paddock.Exhausted)
	wantKind(t, w.Close(), paddock.Exhausted)
	_, err = w.Write([]byte("more"))
	wantKind(t, err, paddock.Canceled)
}

func TestPartsOfFilesAreRead(t *testing.T) {
	fsys, dir := box(t)
	data := noise(1 << 20)
	put(t, fsys, dir+"/f", data, paddock.CreateOptions{})
	for _, o := range []paddock.OpenOptions{{Offset: 7}, {Length: 9}, {Offset: 300000, Length: 400000}, {Offset: 1 << 20}, {Offset: 1 << 30}, {Offset: 1<<20 - 1, Length: 50}} {
		from := min(o.Offset, int64(len(data)))
		to := int64(len(data))
		if o.Length > 0 {
			to = min(to, from+o.Length)
		}
		if got := get(t, fsys, dir+"/f", o); !bytes.Equal(got, data[from:to]) {
			t.Errorf("%+v: %d bytes, want %d", o, len(got), to-from)
		}
	}
	if _, err := fsys.Open(t.Context(), dir+"/f", paddock.OpenOptions{Offset: -1}); paddock.KindOf(err) != paddock.Invalid {
		t.Error(err)
	}
	if got := get(t, fsys, "/dev/zero", paddock.OpenOptions{Length: 1000}); !bytes.Equal(got, make([]byte, 1000)) {
		t.Errorf("/dev/zero gives %d bytes", len(got))
	}
	if got := get(t, fsys, "/proc/version", paddock.OpenOptions{}); !bytes.Contains(got, []byte("Linux")) {
		t.Errorf("/proc/version, of size 0, holds %q", got)
	}
}

func TestCreateMakesCutsAppendsAndExcludes(t *testing.T) {
	fsys, dir := box(t)
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	name := dir + "/a/b/f"
	put(t, fsys, name, []byte("long text"), paddock.CreateOptions{Parents: true, Mode: 0o666})
	for name, want := range map[string]fs.FileMode{dir + "/a": 0o755 | fs.ModeDir, dir + "/a/b": 0o755 | fs.ModeDir, name: 0o666} {
		if info, err := fsys.Stat(t.Context(), name); err != nil || info.Mode != want {
			t.Errorf("%s has mode %v, want %v (%v)", name, info.Mode, want, err)
		}
	}
	put(t, fsys, name, []byte("short"), paddock.CreateOptions{Mode: 0o600})
	put(t, fsys, name, []byte(" and more"), paddock.CreateOptions{Append: true})
	if got := get(t, fsys, name, paddock.OpenOptions{}); string(got) != "short and more" {
		t.Errorf("it holds %q", got)
	}
	if info, _ := fsys.Stat(t.Context(), name); info.Mode != 0o666 {
		t.Errorf("the mode of an existing file has become %v", info.Mode)
	}
	put(t, fsys, dir+"/only", nil, paddock.CreateOptions{Exclusive: true, Mode: 0o400})
	if info, _ := fsys.Stat(t.Context(), dir+"/only"); info.Mode != 0o400 {
		t.Errorf("mode %v", info.Mode)
	}
}

func TestLinksMeanWhatTheyMeanInside(t *testing.T) {
	fsys, dir := box(t)
	ctx := t.Context()
	put(t, fsys, dir+"/real/file", []byte("data"), paddock.CreateOptions{Parents: true})
	for name, target := range map[string]string{
		"abs": dir + "/real", "rel": "real", "up": "../" + filepath.Base(dir) + "/real/file", "dangling": "new", "chain": "rel/file", "outside": "/proc/version",
	} {
		if err := fsys.Symlink(ctx, target, dir+"/"+name); err != nil {
			t.Fatal(err)
		}
		if info, err := fsys.Stat(ctx, dir+"/"+name); err != nil || info.Link != target || info.Mode&fs.ModeSymlink == 0 {
			t.Errorf("%s is not described itself: %+v, %v", name, info, err)
		}
	}
	for _, name := range []string{"/abs/file", "/rel/file", "/up", "/chain", "/abs/../real/file", "//rel/./file"} {
		if got := get(t, fsys, dir+name, paddock.OpenOptions{}); string(got) != "data" {
			t.Errorf("%s holds %q", name, got)
		}
	}
	if got := get(t, fsys, dir+"/outside", paddock.OpenOptions{}); !bytes.Contains(got, []byte("Linux")) {
		t.Errorf("a link out of the directory gives %q", got)
	}
	put(t, fsys, dir+"/dangling", []byte("made"), paddock.CreateOptions{})
	if got := get(t, fsys, dir+"/new", paddock.OpenOptions{}); string(got) != "made" {
		t.Errorf("the target of the link holds %q", got)
	}
	if err := fsys.Chmod(ctx, dir+"/chain", 0o611); err != nil {
		t.Error(err)
	}
	if info, _ := fsys.Stat(ctx, dir+"/real/file"); info.Mode != 0o611 {
		t.Errorf("chmod did not follow the link: %v", info.Mode)
	}
	if names, err := list(ctx, fsys, dir+"/rel", 9); err != nil || !slices.Equal(names, []string{"file"}) {
		t.Errorf("listed through a link: %q, %v", names, err)
	}
	if err := fsys.Mkdir(ctx, dir+"/rel", paddock.MkdirOptions{Parents: true}); err != nil {
		t.Error("a link to a directory is a directory that is there:", err)
	}
	if err := fsys.Remove(ctx, dir+"/abs", true); err != nil {
		t.Error(err)
	}
	if got := get(t, fsys, dir+"/real/file", paddock.OpenOptions{}); string(got) != "data" {
		t.Error("removing a link removed what it points to")
	}
}

func TestAMagicLinkDoesNotLeadIntoTheAgent(t *testing.T) {
	fsys, dir := box(t)
	secret, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer secret.Close()
	if err := os.Remove(secret.Name()); err != nil {
		t.Fatal(err)
	}
	// Only the kernel's own resolution would reach the removed file.
	link := dir + "/report"
	if err := fsys.Symlink(t.Context(), fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), secret.Fd()), link); err != nil {
		t.Fatal(err)
	}
	if w, err := fsys.Create(t.Context(), link, paddock.CreateOptions{}); err == nil {
		_, _ = w.Write([]byte("x"))
		_ = w.Close()
		defer os.Remove(secret.Name() + " (deleted)")
	}
	if info, err := secret.Stat(); err != nil || info.Size() != 0 {
		t.Errorf("the host wrote into a descriptor of the agent: %v, %v", info, err)
	}
}

func TestOwnersHaveTheSandboxsNames(t *testing.T) {
	fsys, dir := box(t)
	if os.Geteuid() != 0 {
		t.Skip("needs root to give files away")
	}
	put(t, fsys, dir+"/f", nil, paddock.CreateOptions{})
	info, err := fsys.Stat(t.Context(), dir+"/f")
	if err != nil || info.UID != 0 || info.User != "root" || info.Group != "root" {
		t.Errorf("%+v, %v", info, err)
	}
	if err := os.Chown(dir+"/f", 123456, 654321); err != nil {
		t.Fatal(err)
	}
	info, err = fsys.Stat(t.Context(), dir+"/f")
	if err != nil || info.UID != 123456 || info.GID != 654321 || info.User != "" || info.Group != "" {
		t.Errorf("%+v, %v", info, err)
	}
}
