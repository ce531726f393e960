package step

import (
	"errors"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// ordinary takes from the thread of a test what root may do in spite of modes. The thread ends with the test.
func ordinary(t *testing.T) {
	t.Helper()
	runtime.LockOSThread()
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var caps [2]unix.CapUserData
	must(t, unix.Capget(&head, &caps[0]))
	caps[0].Effective &^= 1<<unix.CAP_DAC_OVERRIDE | 1<<unix.CAP_DAC_READ_SEARCH
	must(t, unix.Capset(&head, &caps[0]))
}

// watched returns why a watch ended the command.
func (r *reviewing) watched(t *testing.T, most int64) (reason string) {
	t.Helper()
	r.l.Watch(t.Context(), most, func(why string) { reason = why })
	return reason
}

func TestALayerThatTakesTooMuchIsTold(t *testing.T) {
	r := layered(t, Options{}, nil)
	plant(t, r.upper, map[string]string{"d/large": strings.Repeat("x", 2<<20)})
	if why := r.watched(t, 1<<20); why != "what it changed takes more than 1 MiB" {
		t.Errorf("%q", why)
	}
}

func TestALayerThatHidesWhatItTakesIsTold(t *testing.T) {
	for name, mode := range map[string]os.FileMode{"unlisted": 0o300, "unreached": 0o400, "closed": 0} {
		t.Run(name, func(t *testing.T) {
			r := layered(t, Options{}, nil)
			plant(t, r.upper, map[string]string{"d/large": strings.Repeat("x", 2<<20)})
			must(t, os.Chmod(r.upper+"/d", mode))
			ordinary(t)
			if why := r.watched(t, 1<<20); !strings.Contains(why, "may not read") {
				t.Errorf("%q", why)
			}
			must(t, os.Chmod(r.upper+"/d", 0o700))
		})
	}
	t.Run("deep", func(t *testing.T) {
		r := layered(t, Options{}, nil)
		must(t, os.MkdirAll(r.upper+"/"+strings.Repeat("d/", maxDepth), 0o700))
		if why := r.watched(t, 1<<30); !strings.Contains(why, "in each other") {
			t.Errorf("%q", why)
		}
	})
	t.Run("unlinked", func(t *testing.T) { // which only the disk tells
		r := layered(t, Options{}, nil)
		plant(t, r.upper, map[string]string{"d/seen": strings.Repeat("x", 2<<20)})
		free := int64(100 << 30)
		r.v.space = func(string) (int64, int64, error) { free -= 600 << 20; return free, 0, nil }
		if why := r.watched(t, 16<<20); !strings.Contains(why, "1040 MiB") {
			t.Errorf("%q", why)
		}
	})
	t.Run("unknown", func(t *testing.T) {
		r := layered(t, Options{}, nil)
		r.v.space = func(string) (int64, int64, error) { return 0, 0, errors.New("broken") }
		if why := r.watched(t, 16<<20); !strings.Contains(why, "broken") {
			t.Errorf("%q", why)
		}
	})
	t.Run("many", func(t *testing.T) {
		r := layered(t, Options{Changes: 10}, nil)
		for _, name := range []string{"a", "b", "c", "d"} {
			must(t, os.MkdirAll(r.upper+"/"+strings.Repeat(name+"/", 10), 0o700))
		}
		if why := r.watched(t, 1<<30); !strings.Contains(why, "40 files") {
			t.Errorf("%q", why)
		}
	})
}

func TestMeasuringKeepsLittle(t *testing.T) {
	dir := t.TempDir()
	deep := dir
	for range 15 { // with a path that is as long as one may be
		deep += "/" + strings.Repeat("d", 250)
	}
	must(t, os.MkdirAll(deep, 0o700))
	for i := range 5000 {
		must(t, os.Mkdir(deep+"/"+strings.Repeat("n", 50)+string(rune('a'+i%26))+strings.Repeat("x", i/26), 0o700))
	}
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	most := uint64(0)
	_, err := weigh(dir, 1<<20, func() error { return nil })
	runtime.ReadMemStats(&after)
	most = after.TotalAlloc - before.TotalAlloc
	if must(t, err); most > 16<<20 { // of 5,000 paths alone it would be 19 MiB
		t.Errorf("%d MiB", most>>20)
	}
}

func TestReportsOfChangesAreNotKept(t *testing.T) {
	r := layered(t, Options{}, nil)
	before := heap()
	for i := range 20_000 {
		r.l.Changing(r.dir, strings.Repeat("d/", 1900)+strconv.Itoa(i))
	}
	if after := heap(); after > before+8<<20 { // of the paths it would be 76 MiB
		t.Errorf("%d MiB", (after-before)>>20)
	}
	runtime.KeepAlive(r)
}

// heap returns how many bytes are in use.
func heap() uint64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
