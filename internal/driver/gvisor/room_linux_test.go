package gvisor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// run runs a shell command that must succeed.
func run(t *testing.T, sb paddock.Sandbox, script string) {
	t.Helper()
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"sh", "-c", script}})
	if err != nil {
		t.Fatal(err)
	}
	if exit, err := p.Wait(t.Context()); err != nil || exit.Code != 0 {
		t.Fatalf("%s: %+v, %v", script, exit, err)
	}
}

// A tree that costs a command nothing must not fill the host's disk, nor end the sandbox: a
// sparse file, long names, many small files.
func TestASnapshotOfFilesIsBounded(t *testing.T) {
	d, _ := driver(t)
	for _, row := range []struct{ what, make, undo, word string }{
		{"an exabyte of holes", "truncate -s 1E /tmp/hole", "rm /tmp/hole", "/tmp/hole"},
		{"the largest file there is", "truncate -s 9223372036854775807 /tmp/hole", "rm /tmp/hole", "/tmp/hole"},
		{"a little more than the disk", "truncate -s 65M /tmp/hole", "rm /tmp/hole", "/tmp/hole"},
		{"many files that are small enough", "for i in 1 2 3; do truncate -s 60M /tmp/many$i; done", "rm /tmp/many?", "/tmp/many"},
		{"a name of lines", `truncate -s 1T "$(printf '/tmp/a\nb\033[31m')"`, "rm /tmp/a*", `a\nb\x1b[31m`},
		{"deep names", "python3 -c 'import os\nos.chdir(\"/tmp\")\nfor i in range(1500):\n os.mkdir(\"d\"*250); os.chdir(\"d\"*250)'", "true", "names"},
	} {
		t.Run(row.what, func(t *testing.T) {
			sb := create(t, d, paddock.Spec{Ephemeral: true, Limits: paddock.Limits{Disk: 64 << 20}})
			run(t, sb, "echo kept > /tmp/kept")
			run(t, sb, row.make)
			kept, begun := saved(t), time.Now()
			_, err := sb.Snapshot(t.Context(), paddock.SnapshotOptions{})
			if paddock.KindOf(err) != paddock.Exhausted || !strings.Contains(err.Error(), row.word) {
				t.Errorf("%v (%v), want %v with %q", err, paddock.KindOf(err), paddock.Exhausted, row.word)
			}
			if now := saved(t); now != kept {
				t.Errorf("%d snapshots were left", now-kept)
			}
			if spent := time.Since(begun); spent > 20*time.Second {
				t.Errorf("it took %v", spent)
			}
			run(t, sb, "grep -q kept /tmp/kept")
			run(t, sb, row.undo)
			if row.undo == "true" {
				return
			}
			id, err := sb.Snapshot(t.Context(), paddock.SnapshotOptions{})
			if err != nil {
				t.Fatal(err)
			}
			run(t, create(t, d, paddock.Spec{Ephemeral: true, Root: paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}}), "grep -q kept /tmp/kept")
		})
	}
}

// A disk full of ordinary files is within the limit of a snapshot.
func TestAFullDiskIsSaved(t *testing.T) {
	d, _ := driver(t)
	sb := create(t, d, paddock.Spec{Ephemeral: true, Limits: paddock.Limits{Disk: 64 << 20}})
	run(t, sb, "mkdir /tmp/d && for i in $(seq 2000); do echo $i > /tmp/d/$i; done; ln /tmp/d/1 /tmp/d/link; head -c 30M /dev/urandom > /tmp/large; sha256sum /tmp/large /tmp/d/link > /tmp/sums")
	run(t, sb, "truncate -s 20M /tmp/hole")
	id, err := sb.Snapshot(t.Context(), paddock.SnapshotOptions{})
	if err != nil {
		t.Fatal(err)
	}
	run(t, create(t, d, paddock.Spec{Ephemeral: true, Root: paddock.Root{Kind: paddock.RootSnapshot, Snapshot: id}}), "cd /tmp && sha256sum -c sums && ls d | wc -l | grep -q 2001")
}
