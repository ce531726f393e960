package agentprofile

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/buildcache"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

const (
	aboutName = "about.json" // is there when a state is complete
	lockName  = "lock"
	baseName  = "base" // what the sandbox was given; no sandbox sees it
	homeName  = "home" // what the sandbox has; hostile
)

// A Home is the state of an agent in a workspace, held for a sandbox.
type Home struct {
	ID    string
	New   bool     // it was made by this call
	Notes []string // what was not copied, and why
	Ends  string   // what placeholders of keys end with in each sandbox of the state, in letters and digits

	dir  string
	lock *os.File
}

// about is what is known of a state.
type about struct {
	Version   int    `json:"version"`
	Agent     string `json:"agent"`
	Workspace string `json:"workspace"`
	Ends      string `json:"ends"`
}

// newEnds makes what placeholders end with. Claude Code notes the last 20 characters of a key that its user agreed to.
func newEnds() string {
	const length = 20
	return strings.ToLower(rand.Text())[:length] // which has 26 characters
}

var stateID = regexp.MustCompile(`\A[a-z][a-z0-9-]{0,31}-[0-9a-f]{16}\z`)

// IsID reports whether a text can be the ID of a state.
func IsID(text string) bool { return stateID.MatchString(text) }

// IDOf names the state of an agent in a workspace, which is the directory at a real path: another directory that takes
// its place is another workspace.
func IDOf(agent, workspace string) (string, error) {
	st, err := sys.StatAt(sys.AtCWD, workspace)
	if err != nil {
		return "", fmt.Errorf("%s: %w", workspace, err)
	}
	born, err := sys.BornAt(sys.AtCWD, workspace)
	if err != nil {
		return "", fmt.Errorf("%s: %w", workspace, err)
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%d\x00%d\x00%s", st.Ino, born, workspace))
	return agent + "-" + hex.EncodeToString(sum[:8]), nil
}

// Open returns the state of an agent in a workspace, below a directory of the caller's, and makes it from the files of
// the caller's home if it is missing. Close it when the sandbox has ended.
func Open(dir, home, workspace string, p *Profile) (*Home, error) {
	id, err := IDOf(p.Name, workspace)
	if err != nil {
		return nil, err
	}
	s := &Home{ID: id, dir: filepath.Join(dir, id)}
	if err := makeOwn(dir); err != nil {
		return nil, fmt.Errorf("state of %s: %w", p.Name, err)
	}
	if s.lock, err = s.hold(); err != nil {
		return nil, fmt.Errorf("state of %s: %w", p.Name, err)
	}
	if err := s.prepare(home, workspace, p); err != nil {
		return nil, errors.Join(fmt.Errorf("state of %s: %w", p.Name, err), s.lock.Close())
	}
	return s, nil
}

// hold makes the directory of a state, and takes its lock: alone if nobody else has it, and else beside others, which have
// made the state.
func (s *Home) hold() (*os.File, error) {
	for {
		if err := makeOwn(s.dir); err != nil {
			return nil, err
		}
		f, err := openLock(s.dir)
		if errors.Is(err, os.ErrNotExist) {
			continue // it was removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		if err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); errors.Is(err, syscall.EWOULDBLOCK) {
			err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH)
		}
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		held, err := f.Stat()
		if err != nil {
			return nil, errors.Join(err, f.Close())
		}
		if there, err := os.Lstat(f.Name()); err == nil && os.SameFile(held, there) {
			return f, nil
		}
		if err := f.Close(); err != nil {
			return nil, err
		}
	}
}

func openLock(dir string) (*os.File, error) {
	return os.OpenFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE|syscall.O_NOFOLLOW, 0o600)
}

// prepare makes what is missing, and lets others take the lock.
func (s *Home) prepare(home, workspace string, p *Profile) error {
	done := filepath.Join(s.dir, aboutName)
	if _, err := os.Lstat(done); errors.Is(err, os.ErrNotExist) {
		// Whoever had the lock alone may have given up.
		if err := syscall.Flock(int(s.lock.Fd()), syscall.LOCK_EX); err != nil {
			return err
		}
	}
	text, err := os.ReadFile(done)
	if errors.Is(err, os.ErrNotExist) {
		text, err = s.begin(home, workspace, p)
	}
	if err != nil {
		return err
	}
	var a about
	if err := json.Unmarshal(text, &a); err != nil {
		return fmt.Errorf("%s: %w", done, err)
	}
	s.Ends = a.Ends
	if err := s.keep(p); err != nil {
		return err
	}
	if err := os.Chtimes(done, time.Time{}, time.Now()); err != nil { // when it was used
		return err
	}
	return syscall.Flock(int(s.lock.Fd()), syscall.LOCK_SH)
}

// begin makes a new state. An earlier try may have been cut off.
func (s *Home) begin(home, workspace string, p *Profile) ([]byte, error) {
	for _, name := range []string{baseName, homeName} {
		if err := buildcache.Clear(filepath.Join(s.dir, name)); err != nil {
			return nil, err
		}
		if err := os.Mkdir(filepath.Join(s.dir, name), 0o700); err != nil {
			return nil, err
		}
	}
	a := about{1, p.Name, workspace, newEnds()}
	notes, err := fill(s.dir, home, p, map[string]string{"{workspace}": workspace, "{ends}": a.Ends})
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(a)
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(s.dir, aboutName), text, 0o600); err != nil {
		return nil, err
	}
	s.New, s.Notes = true, notes
	return text, nil
}

// keep makes the directories that are kept. A sandbox has them as mounts, so it cannot have put a link in their place,
// but it may have closed them.
func (s *Home) keep(p *Profile) error {
	root, err := os.OpenRoot(filepath.Join(s.dir, homeName))
	if err != nil {
		return err
	}
	defer root.Close()
	for _, dir := range p.State.Keep {
		if err := root.MkdirAll(dir[2:], 0o700); err != nil {
			return err
		}
		at := filepath.Join(s.dir, homeName, dir[2:])
		if real, err := filepath.EvalSymlinks(filepath.Dir(at)); err != nil || real != filepath.Dir(at) {
			return fmt.Errorf("%s leads through a link: %w", at, paddock.Denied)
		}
		if err := sys.ChmodAt(sys.AtCWD, at, 0o700); err != nil {
			return fmt.Errorf("%s: %w", at, err)
		}
	}
	return nil
}

// Mounts shows the kept directories in a sandbox.
func (s *Home) Mounts(p *Profile) []paddock.Mount {
	var list []paddock.Mount
	for _, dir := range p.State.Keep {
		list = append(list, paddock.Mount{Source: filepath.Join(s.dir, homeName, dir[2:]), Target: dir, Write: true, Cache: true})
	}
	return list
}

// Put writes a file of the sandbox's home in a kept directory, in the place of what is there. It follows no link. The name
// is relative to the home.
func (s *Home) Put(name string, data []byte) error {
	if !filepath.IsLocal(name) {
		return fmt.Errorf("%q is no name below the home: %w", name, paddock.Invalid)
	}
	home, err := openDir(filepath.Join(s.dir, homeName))
	if err != nil {
		return err
	}
	defer sys.Close(home)
	return put(home, name, data, 0o600)
}

// Close gives the state back.
func (s *Home) Close() error { return s.lock.Close() }

func openDir(dir string) (int, error) {
	fd, err := sys.OpenAt(sys.AtCWD, dir, syscall.O_RDONLY|syscall.O_DIRECTORY, 0)
	if err != nil {
		return -1, fmt.Errorf("%s: %w", dir, err)
	}
	return fd, nil
}

// An Entry is what List knows of a state.
type Entry struct {
	ID        string    `json:"id"`
	Agent     string    `json:"agent"`
	Workspace string    `json:"workspace"`
	Used      time.Time `json:"used"`
	Gone      bool      `json:"gone,omitempty"` // the workspace is not there any more
}

// List returns the states below a directory, those that were used last first.
func List(dir string) ([]Entry, error) {
	found, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var list []Entry
	for _, f := range found {
		if !f.IsDir() || !stateID.MatchString(f.Name()) {
			continue
		}
		at := filepath.Join(dir, f.Name(), aboutName)
		data, err := os.ReadFile(at)
		if err != nil {
			continue // it is being made
		}
		var a about
		st, err := os.Lstat(at)
		if err != nil || json.Unmarshal(data, &a) != nil {
			continue
		}
		now, err := IDOf(a.Agent, a.Workspace)
		list = append(list, Entry{ID: f.Name(), Agent: a.Agent, Workspace: a.Workspace, Used: st.ModTime(), Gone: err != nil || now != f.Name()})
	}
	slices.SortStableFunc(list, func(a, b Entry) int { return b.Used.Compare(a.Used) })
	return list, nil
}

// Reset removes a state. If a sandbox uses it, the error is [paddock.Conflict].
func Reset(dir, id string) error {
	at := filepath.Join(dir, id)
	if _, err := os.Lstat(at); !stateID.MatchString(id) || err != nil {
		return fmt.Errorf("state %.60q: %w", id, paddock.NotFound)
	}
	lock, err := openLock(at)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("state %s: a sandbox uses it: %w", id, paddock.Conflict)
	}
	if err := os.Remove(filepath.Join(at, aboutName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err // from here on it is not complete
	}
	if err := errors.Join(buildcache.Clear(filepath.Join(at, homeName)), buildcache.Clear(filepath.Join(at, baseName))); err != nil {
		return err
	}
	// Whoever waits for the lock makes everything anew.
	if err := os.Remove(filepath.Join(at, lockName)); err != nil {
		return err
	}
	if err := os.Remove(at); err != nil && !errors.Is(err, syscall.ENOTEMPTY) { // somebody has begun to make it anew
		return err
	}
	return nil
}
