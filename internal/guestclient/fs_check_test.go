package guestclient

import (
	"io/fs"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

func TestWhatAHostileGuestSaysOfAFileIsRefused(t *testing.T) {
	good := func() *guestpb.File { return &guestpb.File{Name: []byte("/dir/f"), Mode: 0o100644} }
	if _, err := fileInfo(good()); err != nil {
		t.Fatal(err)
	}
	for what, spoil := range map[string]func(*guestpb.File){
		"no name":          func(f *guestpb.File) { f.Name = nil },
		"a relative name":  func(f *guestpb.File) { f.Name = []byte("f") },
		"a NUL":            func(f *guestpb.File) { f.Name = []byte("/\x00") },
		"a huge name":      func(f *guestpb.File) { f.Name = []byte("/" + strings.Repeat("n", maxListName)) },
		"a negative size":  func(f *guestpb.File) { f.Size = -1 },
		"a huge mode":      func(f *guestpb.File) { f.Mode = 1 << 31 },
		"a file that says": func(f *guestpb.File) { f.Link = []byte("x") },
		"a NUL in a link":  func(f *guestpb.File) { f.Mode, f.Link = modeLink, []byte("\x00") },
	} {
		f := good()
		spoil(f)
		if _, err := fileInfo(f); err == nil || paddock.KindOf(err) != paddock.Internal {
			t.Errorf("%s: %v", what, err)
		}
	}
	if _, err := fileInfo(nil); err == nil {
		t.Error("no file at all is accepted")
	}
	f := good()
	f.User, f.Group = "esc\x1b[2J", strings.Repeat("g", 10_000)
	info, err := fileInfo(f)
	if err != nil || strings.Contains(info.User, "\x1b") || len(info.Group) > maxUserName {
		t.Errorf("%q, %d bytes, %v", info.User, len(info.Group), err)
	}
}

func TestOnlyFilesOfTheDirectoryAreBelievedToBeListed(t *testing.T) {
	for _, row := range []struct {
		dir, name string
		depth     int
		want      bool
	}{
		{"/a", "/a/b", 1, true},
		{"/a", "/a/b/c", 1, false},
		{"/a", "/a/b/c", 2, true},
		{"/a", "/a", 9, false},
		{"/a", "/a/", 9, false},
		{"/a", "/ab", 9, false},
		{"/a", "/b/a", 9, false},
		{"/a", "/a/../b", 9, false},
		{"/a", "/a/.", 9, false},
		{"/a", "/a//b", 9, false},
		{"/a", "/a/b/", 9, false},
		{"/a", "/a/" + strings.Repeat("n", 256), 9, false},
		{"/", "/a", 1, true},
		{"/", "/", 1, false},
		{"/", "a", 1, false},
		{"/x/..", "/x/../a", 1, true},
	} {
		if got := below(row.dir, row.name, row.depth); got != row.want {
			t.Errorf("%q in %q, depth %d: %v", row.name, row.dir, row.depth, got)
		}
	}
}

func TestModesAreTranslated(t *testing.T) {
	for mode, want := range map[uint32]fs.FileMode{
		0o100644: 0o644,
		0o040755: fs.ModeDir | 0o755,
		0o120777: fs.ModeSymlink | 0o777,
		0o010600: fs.ModeNamedPipe | 0o600,
		0o140600: fs.ModeSocket | 0o600,
		0o060600: fs.ModeDevice | 0o600,
		0o020600: fs.ModeDevice | fs.ModeCharDevice | 0o600,
		0o104755: fs.ModeSetuid | 0o755,
		0o102755: fs.ModeSetgid | 0o755,
		0o041777: fs.ModeDir | fs.ModeSticky | 0o777,
		0:        fs.ModeIrregular,
	} {
		if got, ok := fileMode(mode); !ok || got != want {
			t.Errorf("%o: %v, want %v", mode, got, want)
		}
	}
}

func FuzzListResponse(f *testing.F) {
	for _, m := range []*guestpb.ListResponse{
		{},
		{Files: []*guestpb.File{{Name: []byte("/dir/f"), Mode: 0o100644, Size: 5, User: "root"}}},
		{Files: []*guestpb.File{{Name: []byte("/dir/../etc"), Mode: 1 << 31, Size: -1}, nil}},
		{Files: []*guestpb.File{{Name: []byte("/dir/l"), Mode: 0o120777, Link: []byte("\x00/")}}},
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var m guestpb.ListResponse
		if proto.Unmarshal(data, &m) != nil {
			return
		}
		for _, file := range m.GetFiles() {
			info, err := fileInfo(file)
			if err != nil {
				continue
			}
			if info.Size < 0 || hasNUL(info.Name) || hasNUL(info.Link) || info.Name[0] != '/' || info.UID < 0 || info.GID < 0 {
				t.Errorf("believed: %+v", info)
			}
			if info.Link != "" && info.Mode&fs.ModeSymlink == 0 {
				t.Errorf("a link that is none: %+v", info)
			}
			if strings.ContainsAny(info.User+info.Group, "\x00\x1b\n\r") {
				t.Errorf("names that a terminal obeys: %+v", info)
			}
			if below("/dir", info.Name, 3) && (!strings.HasPrefix(info.Name, "/dir/") || strings.Contains(info.Name+"/", "/../") || strings.Count(info.Name, "/") > 4) {
				t.Errorf("believed to be in the directory: %q", info.Name)
			}
		}
	})
}

func FuzzWatchResponse(f *testing.F) {
	for _, m := range []*guestpb.WatchResponse{
		{},
		{Events: []*guestpb.FileEvent{{Op: guestpb.FileOp_FILE_OP_CREATE, Name: []byte("/dir/f")}, {Op: 99, Name: []byte("/dir"), Lost: true}}},
		{Events: []*guestpb.FileEvent{{Op: guestpb.FileOp_FILE_OP_RENAME, Name: []byte("/etc/passwd")}, nil}},
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	v := &view{dir: "/dir", depth: 2}
	f.Fuzz(func(t *testing.T, data []byte) {
		var m guestpb.WatchResponse
		if proto.Unmarshal(data, &m) != nil {
			return
		}
		for _, event := range m.GetEvents() {
			e, err := v.event(event)
			if err != nil {
				continue
			}
			if e.Op == "" || (e.Name != "/dir" && !strings.HasPrefix(e.Name, "/dir/")) || hasNUL(e.Name) || strings.Contains(e.Name+"/", "/../") {
				t.Errorf("believed: %+v", e)
			}
		}
	})
}

func FuzzName(f *testing.F) {
	for _, s := range []string{"/", "//a/./b/", "/a/..", "rel", "", "/a\x00", "/.", "/\xff", "/" + strings.Repeat("n", 256)} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if err := checkName("test", name); err != nil {
			if paddock.KindOf(err) != paddock.Invalid {
				t.Errorf("%q: %v", name, err)
			}
			return
		}
		if hasNUL(name) || len(name) > maxName || name[0] != '/' {
			t.Errorf("%q would be sent", name)
		}
		if once := tidy(name); tidy(once) != once || !below("/", once, len(name)) && once != "/" && !strings.Contains(once+"/", "/../") {
			t.Errorf("%q is tidied to %q", name, once)
		}
	})
}
