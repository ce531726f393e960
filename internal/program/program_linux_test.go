package program

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// TestMain makes this program one that is executed by itself.
func TestMain(m *testing.M) {
	if Renew(os.Getenv("PADDOCK_TEST_CACHE"), func() []Program { return []Program{other()} }) {
		return
	}
	switch os.Getenv("PADDOCK_TEST_PART") {
	case "front":
		self, err := os.ReadFile("/proc/self/exe")
		if err == nil {
			err = os.Setenv("PADDOCK_TEST_PART", "back")
		}
		if err == nil {
			err = Embedded("back", self).Exec(os.Getenv("PADDOCK_TEST_CACHE"), []string{"paddock", "an argument"}, os.Environ(), other(), Embedded("gone", []byte{}))
		}
		_, _ = os.Stderr.WriteString(err.Error())
		os.Exit(1)
	case "back":
		os.Exit(back())
	}
	os.Exit(m.Run())
}

// other is handed on.
func other() Program { return Embedded("other", []byte(long("#!/other"))) }

// back is executed by the front, and tells what it was handed.
func back() int {
	h, err := Received()
	if err != nil {
		_, _ = os.Stderr.WriteString(err.Error())
		return 1
	}
	f, err := h.Get("other").Open("")
	if err != nil {
		_, _ = os.Stderr.WriteString(err.Error())
		return 1
	}
	if how, ok := os.LookupEnv("PADDOCK_TEST_SPOIL"); ok {
		held, err := spoil(f, how)
		if err == nil {
			defer held.Close()
			f, err = h.Get("other").Open("")
		}
		if err != nil {
			_, _ = os.Stderr.WriteString(err.Error())
			return 1
		}
	}
	content, err := content(f)
	carrier, _ := os.Readlink(h.Get("other").Carrier())
	_, gone := h.Get("gone").Open("")
	_, env := os.LookupEnv(handedVariable)
	if err != nil || carrier == "" || !errors.Is(gone, paddock.Unsupported) || env {
		_, _ = os.Stderr.WriteString("handed on wrongly: " + f.Name() + " " + carrier)
		return 1
	}
	_, _ = os.Stdout.WriteString(strings.Join(os.Args, " ") + " " + content)
	return 42
}

func TestAProgramIsExecutedAndHandedTheOthers(t *testing.T) {
	for name, cache := range map[string]string{"from the cache": filepath.Join(t.TempDir(), "cache"), "from memory": ""} {
		cmd := exec.Command("/proc/self/exe")
		cmd.Env = append(os.Environ(), "PADDOCK_TEST_PART=front", "PADDOCK_TEST_CACHE="+cache, handedVariable+"=nonsense")
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != 42 || !strings.HasPrefix(string(out), "paddock an argument") {
			t.Errorf("%s: %v: %s", name, err, out)
		}
	}
}

// packed gives a program as a build compresses it.
func packed(t *testing.T, content string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// gives opens a program and checks its content. It returns the name of the file.
func gives(t *testing.T, p Program, cache, want string) string {
	t.Helper()
	f, err := p.Open(cache)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
	if err != nil || string(data) != want {
		t.Errorf("it gives %.20q, not %.20q (%v)", data, want, err)
	}
	return f.Name()
}

// They are longer than what is looked at of a program.
func long(begin string) string { return begin + strings.Repeat(", and more", 2000) }

func kinds(t *testing.T) map[string]Program {
	return map[string]Program{"as it is": Embedded("thing", []byte(long("the program"))), "compressed": Embedded("thing", packed(t, long("the program")))}
}

// plant writes another program of the same length, as if it were the cached one.
func plant(file string) error {
	return errors.Join(os.WriteFile(file, []byte(long("ANOTHER ONE")), 0o755), os.Chmod(file, 0o555))
}

// Whoever else may have written a file of the cache, it is not executed.
func TestACacheThatOthersMayWriteIsNotTrusted(t *testing.T) {
	for name, spoil := range map[string]func(dir, file string) error{
		"a directory for everyone": func(dir, file string) error {
			return errors.Join(os.Chmod(dir, 0o777), os.Chmod(file, 0o755), plant(file))
		},
		"a file for its owner": func(_, file string) error {
			return errors.Join(os.Chmod(file, 0o755), os.WriteFile(file, []byte(long("ANOTHER ONE")), 0o755))
		},
		"another content": func(_, file string) error {
			st, err := os.Stat(file)
			if err != nil {
				return err
			}
			return errors.Join(os.Chmod(file, 0o755), plant(file), os.Chtimes(file, st.ModTime(), st.ModTime()))
		},
		"another file": func(dir, file string) error {
			return errors.Join(plant(filepath.Join(dir, "x")), os.Rename(filepath.Join(dir, "x"), file))
		},
		"a link": func(dir, file string) error {
			return errors.Join(os.Remove(file), plant(filepath.Join(dir, "x")), os.Symlink("x", file))
		},
		"a FIFO": func(_, file string) error {
			return errors.Join(os.Remove(file), syscall.Mkfifo(file, 0o555))
		},
		"a directory": func(_, file string) error {
			return errors.Join(os.Remove(file), os.Mkdir(file, 0o700))
		},
		"another cache in its place": func(dir, file string) error {
			return errors.Join(os.Rename(dir, dir+".away"), os.Mkdir(dir, 0o700), plant(file))
		},
	} {
		for kind, p := range kinds(t) {
			t.Run(name+", "+kind, func(t *testing.T) {
				dir := filepath.Join(t.TempDir(), "cache")
				file := filepath.Join(dir, p.cacheName())
				if got := gives(t, p, dir, long("the program")); got != file {
					t.Fatalf("opened %s, not %s", got, file)
				}
				if err := spoil(dir, file); err != nil {
					t.Fatal(err)
				}
				gives(t, p, dir, long("the program"))
			})
		}
	}
}

// A directory that was a sandbox's to write, or came out of an archive, may become the
// cache: another user's, or by another environment.
func TestAFileThatNobodyOfUsHasWrittenIsNotExecuted(t *testing.T) {
	for kind, p := range kinds(t) {
		dir := filepath.Join(t.TempDir(), "cache")
		file := filepath.Join(dir, p.cacheName())
		if err := errors.Join(os.Mkdir(dir, 0o700), plant(file)); err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if got := gives(t, p, dir, long("the program")); got != file {
				t.Errorf("%s: %s is not made anew: opened %s", kind, file, got)
			}
		}
	}
}

// A sandbox that has a file open for writing could change it after every look.
func TestAFileThatSomebodyHasOpenForWritingIsNotTrusted(t *testing.T) {
	dir := t.TempDir()
	c, err := openCache(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	p := Embedded("thing", []byte(long("the program")))
	if err := errors.Join(c.begin("new-x", "x"), c.fill("new-x", []byte(long("the program"))), os.Chmod(filepath.Join(dir, "new-x"), 0o755)); err != nil {
		t.Fatal(err)
	}
	w, err := os.OpenFile(filepath.Join(dir, "new-x"), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.settle("new-x", p.cacheName(), []byte(long("the program"))); err == nil {
		t.Error("a file that is open for writing is taken")
	}
	if _, err := w.WriteAt([]byte(long("ANOTHER ONE")), 0); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := c.settle("new-x", p.cacheName(), []byte(long("the program"))); err == nil {
		t.Error("a file that was changed meanwhile is taken")
	}
	gives(t, p, dir, long("the program"))
}

func TestWhatAKilledWriterHasLeftIsRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	left := filepath.Join(dir, "new-thing-"+strconv.Itoa(os.Getpid()))
	if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(left, []byte("half"), 0o700)); err != nil {
		t.Fatal(err)
	}
	p := Embedded("thing", []byte(long("the program")))
	if got := gives(t, p, dir, long("the program")); got != filepath.Join(dir, p.cacheName()) {
		t.Errorf("opened %s", got)
	}
	if _, err := os.Lstat(left); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestVersionsThatAreUsedBesideEachOtherKeepTheirFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	version := func(n int) Program { return Embedded("thing", []byte(fmt.Sprint("version ", n))) }
	made := map[int]os.FileInfo{}
	for n := range maxVersions + 1 {
		st, err := os.Stat(gives(t, version(n), dir, fmt.Sprint("version ", n)))
		if err != nil {
			t.Fatal(err)
		}
		made[n] = st
		tick(t, st.ModTime())
	}
	for n := 1; n <= maxVersions; n++ {
		st, err := os.Stat(gives(t, version(n), dir, fmt.Sprint("version ", n)))
		if err != nil || !os.SameFile(st, made[n]) {
			t.Errorf("version %d was written again (%v)", n, err)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != maxVersions {
		t.Errorf("%d files are kept (%v)", len(entries), err)
	}
}

// tick waits until the file system's clock, which goes in steps, has gone on.
func tick(t *testing.T, from time.Time) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "clock")
	for {
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if st, err := os.Stat(file); err != nil || st.ModTime().After(from) {
			return
		}
	}
}

func TestManyWhoNeedAProgramAtOnceGetIt(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	p := Embedded("thing", packed(t, long("the program")))
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { gives(t, p, dir, long("the program")) })
	}
	all.Wait()
	if got := gives(t, p, dir, long("the program")); got != filepath.Join(dir, p.cacheName()) {
		t.Errorf("opened %s", got)
	}
}

func TestWhatIsNotHandedOnIsNotBelieved(t *testing.T) {
	for _, text := range []string{"", "guest", "guest:", "guest:x", "guest:1", "guest:+9", ":9", "guest:9,", "guest:9 "} {
		if list, err := parseHanded(text); err == nil {
			t.Errorf("%q: %v", text, list)
		}
	}
}

// spoils are what a box that somebody took over can do to the file of its init, which the caller owns. What is
// returned stays open.
func spoils() map[string]func(path string) (*os.File, error) {
	return map[string]func(path string) (*os.File, error){
		"made useless": func(path string) (*os.File, error) { return nil, os.Chmod(path, 0) },
		"rewritten": func(path string) (*os.File, error) {
			if err := os.Chmod(path, 0o755); err != nil {
				return nil, err
			}
			f, err := os.OpenFile(path, os.O_RDWR, 0)
			if err != nil {
				return nil, err
			}
			_, err = f.WriteAt([]byte(long("ANOTHER ONE")), 0)
			if errors.Is(err, syscall.EPERM) {
				err = nil // it is in sealed memory
			}
			return nil, errors.Join(err, os.Chmod(path, 0o555), f.Close())
		},
		"held open for writing": func(path string) (*os.File, error) {
			if os.Geteuid() != 0 { // root needs no permission
				if err := os.Chmod(path, 0o755); err != nil {
					return nil, err
				}
			}
			return os.OpenFile(path, os.O_RDWR, 0)
		},
	}
}

// spoil closes a program's file as after a start, and does to it what a box can.
func spoil(f *os.File, how string) (held *os.File, err error) {
	exe, err := os.Open(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
	if err != nil {
		return nil, err
	}
	defer exe.Close()
	if err := f.Close(); err != nil {
		return nil, err
	}
	return spoils()[how](fmt.Sprintf("/proc/self/fd/%d", exe.Fd()))
}

// content reads a file from its beginning.
func content(f *os.File) (string, error) {
	data, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
	return string(data), err
}

// wants fails unless a file has the program's content, can be executed, and is not open for writing.
func wants(t *testing.T, f *os.File, want string) {
	t.Helper()
	got, err := content(f)
	if err != nil || got != want {
		t.Errorf("it gives %.20q, not %.20q (%v)", got, want, err)
	}
	if st, err := f.Stat(); err != nil || st.Mode()&0o111 != 0o111 {
		t.Errorf("it cannot be executed: %v (%v)", st.Mode(), err)
	}
	still, err := sys.Unwritten(f)
	if err == nil {
		err = still()
	}
	if err != nil {
		t.Errorf("it is not the caller's alone: %v", err)
	}
}

// The next box must have the true program.
func TestAProgramThatItsBoxHasSpoiledIsNotExecutedAgain(t *testing.T) {
	for how := range spoils() {
		for kind, p := range kinds(t) {
			for where, cache := range map[string]string{"the cache": filepath.Join(t.TempDir(), "cache"), "memory": ""} {
				source := p.Source(cache)
				defer source.Close()
				for opener, open := range map[string]func() (*os.File, error){
					"a long-lived owner": source.Open,
					"another process":    func() (*os.File, error) { return p.Open(cache) },
				} {
					t.Run(strings.Join([]string{how, kind, where, opener}, ", "), func(t *testing.T) {
						f, err := open()
						if err != nil {
							t.Fatal(err)
						}
						held, err := spoil(f, how)
						if err != nil {
							t.Fatal(err)
						}
						defer held.Close()
						for range 2 {
							f, err := open()
							if err != nil {
								t.Fatal(err)
							}
							wants(t, f, long("the program"))
							if err := f.Close(); err != nil {
								t.Error(err)
							}
						}
					})
				}
			}
		}
	}
}

// An owner has many files open at once, and each tells for itself.
func TestAProgramThatIsOpenedForWritingBeforeItsStartIsNotExecuted(t *testing.T) {
	p := Embedded("thing", []byte(long("the program")))
	source := p.Source(filepath.Join(t.TempDir(), "cache"))
	defer source.Close()
	var files []*os.File
	for range 3 {
		f, err := source.Open()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := Intact(f); err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if err := files[0].Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(files[1].Name(), 0o755); err != nil {
		t.Fatal(err)
	}
	// It would wait for the end of the lease.
	if w, err := os.OpenFile(files[1].Name(), os.O_RDWR|syscall.O_NONBLOCK, 0); !errors.Is(err, syscall.EWOULDBLOCK) {
		w.Close()
		t.Fatalf("it is opened for writing: %v", err)
	}
	for _, f := range files[1:] {
		if err := Intact(f); !errors.Is(err, paddock.Unavailable) {
			t.Errorf("it is taken for the true one: %v", err)
		}
	}
	f, err := source.Open()
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := Intact(f); err != nil {
		t.Error(err)
	}
	wants(t, f, long("the program"))
}

// A server is handed its programs, and cannot write one itself.
func TestAProgramThatWasHandedOnAndIsSpoiledIsMadeAnew(t *testing.T) {
	for how := range spoils() {
		for name, cache := range map[string]string{"from the cache": filepath.Join(t.TempDir(), "cache"), "from memory": ""} {
			cmd := exec.Command("/proc/self/exe")
			cmd.Env = append(os.Environ(), "PADDOCK_TEST_PART=front", "PADDOCK_TEST_SPOIL="+how, "PADDOCK_TEST_CACHE="+cache)
			out, err := cmd.CombinedOutput()
			var exit *exec.ExitError
			if want := "paddock an argument " + long("#!/other"); !errors.As(err, &exit) || exit.ExitCode() != 42 || string(out) != want {
				t.Errorf("%s, %s: %v: %.300s", how, name, err, out)
			}
		}
	}
}
