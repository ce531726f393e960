package cgroup

import (
	"bufio"
	"context"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestLimitsCanBeChangedInALivingGroup(t *testing.T) {
	h := host(t)
	g := create(t, h, "update", moderate)
	for _, l := range []paddock.Limits{
		{Memory: 128 << 20, CPUs: 0.5, PIDs: 100},
		{Memory: 96 << 20},
		{Memory: 512 << 20},
		{PIDs: 50, CPUs: 1.5},
	} {
		if err := g.Update(l); err != nil {
			t.Fatal(err)
		}
		if f, _ := g.file(memory, "memory.limit_in_bytes", "memory.max"); l.Memory > 0 {
			if n, err := readCount(f); err != nil || n != l.Memory {
				t.Errorf("memory is %d, %v; want %d", n, err, l.Memory)
			}
			sockets := path.Join(path.Dir(f), socketFile)
			if n, err := readCount(sockets); exists(sockets) && (err != nil || n != l.Memory/socketShare) {
				t.Errorf("memory of sockets is %d, %v; want %d", n, err, l.Memory/socketShare)
			}
		}
		if f, _ := g.file(pids, "pids.max", "pids.max"); l.PIDs > 0 {
			if n, err := readCount(f); err != nil || n != int64(l.PIDs) {
				t.Errorf("pids is %d, %v; want %d", n, err, l.PIDs)
			}
		}
		if f, ok := g.file(cpu, "cpu.cfs_quota_us", ""); ok && l.CPUs > 0 {
			if n, err := readCount(f); err != nil || n != int64(l.CPUs*period) {
				t.Errorf("cpu is %d, %v; want %v", n, err, l.CPUs)
			}
		}
	}
	cmd := helper(t, "hold")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	begin(t, g, cmd)
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "ready\n" {
		t.Fatalf("%q, %v", line, err)
	}
	if err := g.Update(paddock.Limits{Memory: 16 << 20, PIDs: 70}); !errors.Is(err, paddock.Conflict) {
		t.Errorf("less than is in use: %v", err)
	}
	if f, _ := g.file(pids, "pids.max", "pids.max"); f != "" {
		if n, err := readCount(f); err != nil || n != 50 {
			t.Errorf("half of it was done: pids is %d, %v", n, err)
		}
	}
}

func TestBuffersOfSocketsAreLimited(t *testing.T) {
	const limit = 32 << 20
	hosts(t, func(t *testing.T, h *Host, _ paddock.Limits) {
		if _, err := h.find(memory); err != nil {
			t.Skipf("there is no memory controller: %v", err)
		}
		g := create(t, h, "sockets", paddock.Limits{Memory: limit})
		cmd := helper(t, "send")
		var out strings.Builder
		cmd.Stdout = &out
		begin(t, g, cmd)
		err := cmd.Wait()
		if n, e := strconv.Atoi(strings.TrimSpace(out.String())); err == nil && (e != nil || n > limit) {
			t.Errorf("sockets hold %s bytes with a limit of %d", strings.TrimSpace(out.String()), limit)
		}
	})
}

func TestAStricterLimitAboveHolds(t *testing.T) {
	h := host(t)
	outer := create(t, h, "outer", paddock.Limits{CPUs: 0.5})
	f, ok := outer.file(cpu, "cpu.cfs_quota_us", "")
	if !ok {
		t.Skip("version 2 allows any number below a stricter one")
	}
	// As if this process lived in a group with half a processor.
	below := Probe()
	for _, y := range below.hierarchies {
		if slices.Contains(y.controllers, cpu) {
			y.dir = path.Dir(f)
		}
	}
	inner := create(t, below, "inner", paddock.Limits{CPUs: 2})
	f, _ = inner.file(cpu, "cpu.cfs_quota_us", "")
	if b, err := readFile(f, small); err != nil || string(b) != "-1\n" {
		t.Errorf("quota %q, %v", b, err)
	}
}

func TestDiskBandwidthIsLimitedOnTheWholeDisk(t *testing.T) {
	h := host(t)
	if _, err := h.find(blkio); err != nil {
		t.Skipf("no controller for disks: %v", err)
	}
	dir := t.TempDir()
	devices, err := h.devices([]string{dir, dir})
	if err != nil {
		t.Skipf("the temporary directory is on no disk: %v", err)
	}
	g, err := h.Create("disk", paddock.Limits{IO: 3 << 20}, dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Remove(context.Background()); err != nil {
			t.Error(err)
		}
	})
	check := func(want string) {
		t.Helper()
		for _, name := range []string{"blkio.throttle.read_bps_device", "blkio.throttle.write_bps_device"} {
			f, _ := g.file(blkio, name, "io.max")
			if b, err := readFile(f, small); err != nil || !strings.Contains(string(b), devices[0]) || !strings.Contains(string(b), want) {
				t.Errorf("%s: %q, %v", f, b, err)
			}
		}
	}
	check("3145728")
	if err := g.Update(paddock.Limits{IO: 5 << 20}); err != nil {
		t.Fatal(err)
	}
	check("5242880")
}
