package gateway_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
)

// status returns the kernel's status of a process.
func status(t *testing.T, pid int) map[string]string {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := map[string]string{}
	for line := range strings.Lines(string(data)) {
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.Join(strings.Fields(value), " ")
	}
	return fields
}

func TestAGatewayHasGivenUpWhatItDoesNotNeed(t *testing.T) {
	secret := "value-that-nobody-else-sees"
	g := start(t, gatewayclient.Config{Policy: paddock.NetworkPolicy{
		Mode: paddock.NetworkList, Secrets: []paddock.Secret{{Name: "TOKEN", Value: secret, Hosts: []string{"127.0.0.1"}}},
	}}, gatewayclient.Callbacks{})
	// A secret needs an authority, which this one does not have. Its message must not
	// contain the value.
	_, err := g.Ready(t.Context())
	if err == nil || strings.Contains(err.Error(), secret) {
		t.Fatalf("ready: %v", err)
	}
	g = start(t, gatewayclient.Config{Policy: paddock.NetworkPolicy{Mode: paddock.NetworkList}}, gatewayclient.Callbacks{})
	ready(t, g)
	s := status(t, g.PID())
	for field, want := range map[string]string{"Seccomp": "2", "NoNewPrivs": "1", "CapEff": "0000000000000000", "CapPrm": "0000000000000000", "CapInh": "0000000000000000", "CapAmb": "0000000000000000"} {
		if s[field] != want {
			t.Errorf("%s is %s, want %s", field, s[field], want)
		}
	}
	if os.Geteuid() != 0 {
		return // it keeps its owner, and cannot be inspected
	}
	var uid, gid [4]int
	_, _ = fmt.Sscan(s["Uid"], &uid[0], &uid[1], &uid[2], &uid[3])
	_, _ = fmt.Sscan(s["Gid"], &gid[0], &gid[1], &gid[2], &gid[3])
	if n := uid[0]; n < 0x61000000 || uid != [4]int{n, n, n, n} || gid != uid || s["Groups"] != "" {
		t.Errorf("it is %s of %s and %s", s["Uid"], s["Gid"], s["Groups"])
	}
	dir := fmt.Sprintf("/proc/%d", g.PID())
	list, err := os.ReadDir(dir + "/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		to, err := os.Readlink(filepath.Join(dir, "fd", e.Name()))
		if err == nil && !strings.HasPrefix(to, "/dev/null") && !strings.HasPrefix(to, "socket:") && !strings.HasPrefix(to, "anon_inode:") && (e.Name() != "2" || !strings.HasPrefix(to, "pipe:")) && !strings.Contains(to, "cgroup") {
			t.Errorf("it has %s open", to)
		}
	}
	environ, err := os.ReadFile(dir + "/environ")
	if err != nil {
		t.Fatal(err)
	}
	for e := range strings.SplitSeq(strings.Trim(string(environ), "\x00"), "\x00") {
		if e != "" && !strings.HasPrefix(e, "SSL_CERT_") {
			t.Errorf("its environment has %q", e)
		}
	}
}

func TestAGatewayIsReadySoon(t *testing.T) {
	best := time.Hour
	for range 5 {
		begun := time.Now()
		g := start(t, gatewayclient.Config{Policy: paddock.NetworkPolicy{Mode: paddock.NetworkList}}, gatewayclient.Callbacks{})
		ready(t, g)
		best = min(best, time.Since(begun))
		if rollup, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", g.PID())); err == nil {
			for line := range strings.Lines(string(rollup)) {
				if strings.HasPrefix(line, "Private_Dirty") {
					t.Log(strings.TrimSpace(line))
				}
			}
		}
		if err := g.Close(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("ready after %v", best)
	if best > 2*time.Second {
		t.Fatalf("the fastest of five was ready after %v", best)
	}
}
