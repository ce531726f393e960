package gvisor_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/image/imagetest"
)

// smallTree makes a file tree with a shell and some programs of this machine.
func smallTree(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	put := func(from, to string, mode fs.FileMode) {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		to = filepath.Join(dir, to)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, data, mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"sh", "id", "cat", "ls", "stat", "chown", "chmod", "mkdir", "touch", "mknod", "grep", "setpriv", "unshare", "kill", "sleep"} {
		path, err := exec.LookPath(name)
		if err != nil {
			t.Skipf("the image is made of this machine's programs: %v", err)
		}
		put(path, "bin/"+name, 0o755)
		libs, _ := exec.Command("ldd", path).Output() // of a static program it fails
		for _, lib := range regexp.MustCompile(`/[^ ]+\.so[^ ]*`).FindAllString(string(libs), -1) {
			put(lib, lib, 0o755)
		}
	}
	for name, text := range map[string]string{
		"etc/passwd": "root:x:0:0:root:/root:/bin/sh\nfarmer:x:1234:1234::/home/farmer:/bin/sh\n",
		"etc/group":  "root:x:0:\nfarmer:x:1234:\n",
	} {
		if err := os.MkdirAll(filepath.Join(dir, "etc"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// sh runs a script, and returns what it prints.
func sh(t *testing.T, sb paddock.Sandbox, user, script string) string {
	t.Helper()
	var out bytes.Buffer
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"/bin/sh", "-c", script}, User: user, Output: paddock.Output{Stdout: &out, Stderr: &out}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

// ofSmallImage makes a sandbox of an image with smallTree, whose workspace is a new directory.
func ofSmallImage(t *testing.T, change func(*paddock.Spec)) (d paddock.Driver, sb paddock.Sandbox, workspace string) {
	t.Helper()
	images := imagetest.New(t)
	digest := images.Add(t, smallTree(t), image.Config{})
	d, err := gvisor.New(gvisor.Options{State: t.TempDir(), Data: t.TempDir(), Environ: os.Environ(), Hosts: drivertest.Hosts(), Images: images})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	workspace = t.TempDir()
	spec := paddock.Spec{Root: paddock.Root{Kind: paddock.RootImage, Image: digest}, AllowMissing: drivertest.Weak(t, open),
		Mounts: []paddock.Mount{{Source: workspace, Target: "/work", Write: true}}}
	if change != nil {
		change(&spec)
	}
	if sb, err = d.Create(t.Context(), spec); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = sb.Remove(t.Context()) })
	return d, sb, workspace
}

func TestRootOfAnImageIsRootOverItsOwnKernelAlone(t *testing.T) {
	_, sb, workspace := ofSmallImage(t, func(s *paddock.Spec) { s.Limits.PIDs = 40 })
	for what, c := range map[string]struct{ script, want string }{
		"who it is":            {`id -u; grep CapEff /proc/self/status`, "0\nCapEff:\t00000000a80405fb"},
		"an owner":             {`touch /etc/a; chown 33:44 /etc/a; stat -c %u:%g /etc/a`, "33:44"},
		"a set-id program":     {`cat /bin/id >/bin/sid; chmod 4755 /bin/sid; setpriv --reuid 1234 --regid 1234 --clear-groups /bin/sid -u`, "0"},
		"a name space":         {`unshare -U true || echo refused`, "unshare: unshare failed: Operation not permitted\nrefused"},
		"a device of the host": {`mknod /work/null c 1 3 2>/dev/null && echo made || echo refused`, "refused"},
		"a set-id file of it":  {`touch /work/s; chmod 4755 /work/s 2>/dev/null; stat -c %a /work/s`, "644"},
		"an owner of it":       {`touch /work/o; chown 33 /work/o 2>/dev/null || echo refused; stat -c %u /work/o`, "0"},
		"a protected name":     {`mkdir -p /work/.git/hooks 2>/dev/null; echo x 2>/dev/null >/work/.git/hooks/pre-commit || echo refused`, "refused"},
		"control groups":       {`ls /.paddock /sys/fs/cgroup 2>/dev/null | grep pids || echo none`, "none"},
		"other commands":       {`setpriv --reuid 1234 sleep 1000 & kill -9 $!; echo killed`, "killed"},
	} {
		if got := sh(t, sb, "", c.script); got != c.want {
			t.Errorf("%s: %q", what, got)
		}
	}
	if got := sh(t, sb, "", `i=0; while [ $i -lt 60 ]; do sleep 1000 & i=$((i+1)); done; kill -9 -1`); !strings.Contains(got, "fork") {
		t.Errorf("more processes than the limit: %q", got)
	}
	err := filepath.WalkDir(workspace, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		st, err := e.Info()
		if err != nil {
			return err
		}
		if uid := int(st.Sys().(*syscall.Stat_t).Uid); uid != os.Geteuid() || st.Mode()&(fs.ModeSetuid|fs.ModeDevice) != 0 {
			t.Errorf("%s is of user %d, %v", path, uid, st.Mode())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestASandboxOfAnImageIsSavedAndGoesOn(t *testing.T) {
	d, sb, workspace := ofSmallImage(t, nil)
	sh(t, sb, "", `echo new >/etc/new; chown 33 /etc/new; echo x >/tmp/t`)
	if err := sb.Pause(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := sb.Resume(t.Context()); err != nil {
		t.Fatal(err)
	}
	const look, want = `cat /etc/new /tmp/t; stat -c %u /etc/new; id -u`, "new\nx\n33\n0"
	if got := sh(t, sb, "", look); got != want {
		t.Errorf("after a pause: %q", got)
	}
	for _, memory := range []bool{false, true} {
		id, err := sb.Snapshot(t.Context(), paddock.SnapshotOptions{Memory: memory})
		if err != nil {
			t.Fatal(err)
		}
		fork, err := d.Create(t.Context(), paddock.Spec{Root: paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}, AllowMissing: drivertest.Weak(t, open),
			Mounts: []paddock.Mount{{Source: workspace, Target: "/work", Write: true}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := sh(t, fork, "", look); got != want {
			t.Errorf("with memory %t: %q", memory, got)
		}
		if err := fork.Remove(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
