package boxinit

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

func TestSizesAreReadAsTheyWereWritten(t *testing.T) {
	for limits, want := range map[paddock.Limits]Sizes{
		{}:                                     {},
		{Memory: 1 << 40, CPUs: 0.1, PIDs: 64}: {Memory: 1 << 40, Processors: 1, PIDs: 64},
		{CPUs: 1.5}:                            {Processors: 2},
		{CPUs: 3}:                              {Processors: 3},
		{CPUs: 1e30}:                           {Processors: 1<<31 - 1},
	} {
		f, err := os.Create(filepath.Join(t.TempDir(), "sizes"))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if err := SizesOf(limits).Write(f); err != nil {
			t.Fatal(err)
		}
		if got := (&view{sizes: f}).size(); got != want {
			t.Errorf("%+v shows %+v, want %+v", limits, got, want)
		}
	}
}

func TestAViewShowsAsManyProcessorsAsTheBoxHas(t *testing.T) {
	const info = "processor\t: 0\nmodel\t: a\n\nprocessor\t: 1\nmodel\t: b\n\nprocessor\t: 10\nmodel\t: c\n\nHardware\t: d\n"
	const stat, quiet = "cpu  111 222 333\ncpu0 1 2 3\ncpu1 10 20 30\ncpu10 100 200 300\n", "intr 0\nbtime 8\n"
	for _, row := range []struct {
		most              int
		list, info, times string
		fewer             bool
	}{
		{1, "0\n", "processor\t: 0\nmodel\t: a\n\nHardware\t: d\n", "cpu  1 2 3\ncpu0 1 2 3\nintr 0\nbtime 8\n", true},
		{2, "0-1\n", "processor\t: 0\nmodel\t: a\n\nprocessor\t: 1\nmodel\t: b\n\nHardware\t: d\n", "cpu  11 22 33\ncpu0 1 2 3\ncpu1 10 20 30\nintr 0\nbtime 8\n", true},
		{3, "0-1,10\n", info, stat + quiet, false},
		{64, "0-1,10\n", info, stat + quiet, false},
	} {
		set := []byte{1<<0 | 1<<1, 1 << (10 - 8)}
		if got := sys.FirstProcessors(set, row.most); got != row.fewer {
			t.Errorf("%d of 3 processors are fewer: %v", row.most, got)
		}
		for what, it := range map[string][2]string{
			"online": {listOf(set), row.list}, "cpuinfo": {string(processorsOf([]byte(info), set)), row.info}, "stat": {string(timesOf([]byte(stat+"intr 7 3 4\nbtime 8\n"), set)), row.times},
		} {
			if it[0] != it[1] {
				t.Errorf("%s with %d processors is %q, want %q", what, row.most, it[0], it[1])
			}
		}
	}
}

// usageOf returns what a view shows on a host with 1 GB, of which 600 MB are available.
func usageOf(t *testing.T, limit int64, used, parts string) (usage, bool) {
	t.Helper()
	file := func(content string) *os.File {
		f, err := os.Create(filepath.Join(t.TempDir(), "file"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		if _, err := f.WriteString(content); err != nil {
			t.Fatal(err)
		}
		return f
	}
	v := &view{memory: file("MemTotal: 1000000 kB\nMemFree: 1 kB\nMemAvailable: 600000 kB\n"), sizes: file("")}
	if err := (Sizes{Memory: limit}).Write(v.sizes); err != nil {
		t.Fatal(err)
	}
	if used != "" {
		v.used, v.parts = file(used), file(parts)
	}
	return v.usage()
}

func TestAViewShowsTheMemoryOfTheBox(t *testing.T) {
	const mb = 1 << 20
	for name, row := range map[string]struct {
		used, parts                     string
		free, available, cached, shared uint64
	}{
		"version 1":     {"104857600\n", "cache 31457280\nshmem 10485760\ntotal_cache 41943040\ntotal_shmem 10485760\ntotal_rss 52428800\n", 156 * mb, 186 * mb, 40 * mb, 10 * mb},
		"version 2":     {"104857600\n", "anon 52428800\nfile 41943040\nshmem 10485760\nslab_reclaimable 1048576\n", 156 * mb, 187 * mb, 40 * mb, 10 * mb},
		"without group": {"", "", 256 * mb, 256 * mb, 0, 0},
		"too much":      {"999999999999\n", "file 999999999999\n", 0, 256 * mb, 256 * mb, 0},
		"no numbers":    {"x", "anon\nfile x\n\n\x00", 256 * mb, 256 * mb, 0, 0},
	} {
		u, smaller := usageOf(t, 256*mb, row.used, row.parts)
		if !smaller || u.Total != 256*mb || u.Free != row.free || u.available != row.available || u.cached != row.cached || u.Shared != row.shared {
			t.Errorf("%s: %+v, %v", name, u, smaller)
		}
	}
	if _, smaller := usageOf(t, 2<<30, "", ""); smaller {
		t.Error("a limit above the host's memory is shown")
	}
	if u, _ := usageOf(t, 900*mb, "", ""); u.available != 600000<<10 {
		t.Errorf("more is available than the host has: %+v", u)
	}
}

func TestALimitIsToldOnceAndSinceItWasReached(t *testing.T) {
	var l reached
	l.add(processesReached(64))
	first := l.with(nil)
	l.add(diskReached(16 << 20))
	l.add(processesReached(32)) // it was lowered
	list := l.with([]paddock.Refusal{{What: "unlink", Time: first[0].Time.Add(-1)}})
	if len(first) != 1 || len(list) != 3 || list[1].Rule != "the limit of 32 processes and threads was reached" || !list[1].Time.Equal(first[0].Time) || list[2].Rule != "the disk limit of 16 MiB was reached" {
		t.Errorf("%+v, then %+v", first, list)
	}
}
