package guest

import (
	"bytes"
	"strconv"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/paddock-sandbox/paddock/internal/sys"
)

// Bounds of a list of names, which the sandbox's user may have written.
const (
	maxNames     = 64 << 10
	maxNamesFile = 4 << 20
	maxNameText  = 256
)

// names knows users and groups by the sandbox's own /etc/passwd and
// /etc/group, read again when they have changed.
type names struct {
	mu     sync.Mutex
	users  nameFile // guarded by mu
	groups nameFile // guarded by mu
}

// A nameFile is one of the two, as it was when it was read.
type nameFile struct {
	read bool
	seen sys.FileStat
	byID map[uint32]string // never changed after it was made
}

// A roll is names at one time. Its maps are only read.
type roll struct {
	users, groups map[uint32]string
}

// now gives the present names. A file that cannot be read names nobody.
func (n *names) now(f *files) roll {
	n.mu.Lock()
	defer n.mu.Unlock()
	return roll{n.users.now(f, "/etc/passwd"), n.groups.now(f, "/etc/group")}
}

func (n *nameFile) now(f *files, name string) map[uint32]string {
	// What did not change is not opened: where files are served from elsewhere
	// that is what takes long.
	st, err := f.status(name)
	if err != nil {
		*n = nameFile{}
		return nil
	}
	if n.read && st == n.seen {
		return n.byID
	}
	src, err := f.open(name, 0, maxNamesFile)
	if err != nil {
		*n = nameFile{}
		return nil
	}
	defer src.close()
	*n = nameFile{true, st, parseNames(src.all())}
	return n.byID
}

// read gives what there is of a small file.
func read(f *files, name string) []byte {
	src, err := f.open(name, 0, maxNamesFile)
	if err != nil {
		return nil
	}
	defer src.close()
	return src.all()
}

// all reads to the end, or to what cannot be read.
func (s *content) all() (data []byte) {
	buf := make([]byte, 64<<10)
	for {
		got, err := s.read(buf)
		if err != nil || got == 0 {
			return data
		}
		data = append(data, buf[:got]...)
	}
}

// parseUser finds a user by name, or by number. As the C library does it takes the
// first line that fits; one that is malformed is none.
func parseUser(data []byte, name string) (User, bool) {
	for line := range bytes.Lines(data) {
		fields := strings.Split(string(bytes.TrimSuffix(line, []byte("\n"))), ":")
		if len(fields) != 7 || !presentable([]byte(fields[0])) || fields[0] != name && fields[2] != name {
			continue
		}
		uid, err := strconv.ParseUint(fields[2], 10, 31)
		if err != nil {
			continue
		}
		gid, err := strconv.ParseUint(fields[3], 10, 31)
		if err != nil || strings.ContainsRune(fields[5], 0) {
			continue
		}
		return User{Name: fields[0], UID: int(uid), GID: int(gid), Home: fields[5], Shell: fields[6]}, true
	}
	return User{}, false
}

// parseNames reads lines of the form name:password:number[:…]. The first name
// of a number counts; what is malformed is passed over.
func parseNames(data []byte) map[uint32]string {
	byID := map[uint32]string{}
	for line := range bytes.Lines(data) {
		if len(byID) == maxNames {
			break
		}
		fields := bytes.SplitN(bytes.TrimSuffix(line, []byte("\n")), []byte(":"), 4)
		if len(fields) < 3 || !presentable(fields[0]) {
			continue
		}
		id, err := strconv.ParseUint(string(fields[2]), 10, 32)
		if err != nil {
			continue
		}
		if _, ok := byID[uint32(id)]; !ok {
			byID[uint32(id)] = string(fields[0])
		}
	}
	return byID
}

// presentable tells whether a name can be shown as it is.
func presentable(name []byte) bool {
	if len(name) == 0 || len(name) > maxNameText || !utf8.Valid(name) || name[0] == '#' {
		return false
	}
	for _, r := range string(name) {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}
