package program

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// TestMain makes this program one that is executed by itself.
func TestMain(m *testing.M) {
	switch os.Getenv("PADDOCK_TEST_PART") {
	case "front":
		self, err := os.ReadFile("/proc/self/exe")
		if err == nil {
			err = os.Setenv("PADDOCK_TEST_PART", "back")
		}
		if err == nil {
			err = Embedded("back", self).Exec(os.Getenv("PADDOCK_TEST_CACHE"), []string{"paddock", "an argument"}, os.Environ(), Embedded("other", []byte("#!/other")), Embedded("gone", []byte{}))
		}
		_, _ = os.Stderr.WriteString(err.Error())
		os.Exit(1)
	case "back":
		os.Exit(back())
	}
	os.Exit(m.Run())
}

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
	content, err := os.ReadFile(f.Name())
	carrier, _ := os.Readlink(h.Get("other").Carrier())
	_, gone := h.Get("gone").Open("")
	_, env := os.LookupEnv(handedVariable)
	if err != nil && filepath.IsAbs(f.Name()) || carrier == "" || !errors.Is(gone, paddock.Unsupported) || env {
		_, _ = os.Stderr.WriteString("handed on wrongly: " + f.Name() + " " + carrier)
		return 1
	}
	_, _ = os.Stdout.WriteString(strings.Join(os.Args, " ") + " " + string(content))
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

// Whoever else may have written a file of the cache, it is not executed.
func TestACacheThatOthersMayWriteIsNotTrusted(t *testing.T) {
	p := Embedded("thing", []byte("the program"))
	for name, spoil := range map[string]func(dir, file string) error{
		"a directory for everyone": func(dir, _ string) error { return os.Chmod(dir, 0o777) },
		"a file for its owner":     func(_, file string) error { return os.Chmod(file, 0o755) },
		"another content": func(_, file string) error {
			return errors.Join(os.Chmod(file, 0o755), os.WriteFile(file, []byte("ANOTHER ONE"), 0o755), os.Chmod(file, 0o555))
		},
		"a link": func(dir, file string) error {
			return errors.Join(os.Rename(file, filepath.Join(dir, "x")), os.Symlink("x", file))
		},
	} {
		dir := filepath.Join(t.TempDir(), "cache")
		f, err := p.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, p.cacheName())
		if f.Name() != file {
			t.Fatalf("opened %s, not %s", f.Name(), file)
		}
		f.Close()
		if err := spoil(dir, file); err != nil {
			t.Fatal(err)
		}
		f, err = p.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		data := make([]byte, 64)
		n, _ := f.ReadAt(data, 0)
		if string(data[:n]) != "the program" {
			t.Errorf("%s: it gave %q", name, data[:n])
		}
		f.Close()
	}
}

func TestWhatIsNotHandedOnIsNotBelieved(t *testing.T) {
	for _, text := range []string{"", "guest", "guest:", "guest:x", "guest:1", "guest:+9", ":9", "guest:9,", "guest:9 "} {
		if list, err := parseHanded(text); err == nil {
			t.Errorf("%q: %v", text, list)
		}
	}
}
