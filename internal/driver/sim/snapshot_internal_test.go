package sim

import (
	"errors"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/snapshot"
)

func TestASnapshotIsReadInWithinTheLimitsOfItsSandbox(t *testing.T) {
	d, err := New(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	const pieces, size = 64, 1 << 20
	taken := 0
	entries := func(yield func(snapshot.Entry, error) bool) {
		taken = 0
		yield(snapshot.Entry{Path: "f", Kind: snapshot.File, Size: pieces * size, Data: func(yield func(snapshot.Extent, error) bool) {
			b := make([]byte, size)
			for i := range int64(pieces) {
				if taken++; !yield(snapshot.Extent{Offset: i * size, Bytes: b}, nil) {
					return
				}
			}
		}}, nil)
	}
	if err := d.Import("snap-large", paddock.Limits{Disk: 2 << 20}, entries); !errors.Is(err, paddock.Exhausted) {
		t.Errorf("64 MiB into a disk of 2 MiB: %v", err)
	}
	if taken > 8 {
		t.Errorf("%d MiB were read before it was refused", taken)
	}
	if err := d.Import("snap-large", paddock.Limits{Disk: 64 << 20}, entries); err != nil {
		t.Errorf("64 MiB into a disk of 64 MiB: %v", err)
	}
	var many int
	names := func(yield func(snapshot.Entry, error) bool) {
		for range 1_000_000 {
			many++
			if !yield(snapshot.Entry{Path: string(rune('a'+many/10_000)) + string(rune(0x10000+many%10_000)), Kind: snapshot.Pipe}, nil) {
				return
			}
		}
	}
	if err := d.Import("snap-many", paddock.Limits{Disk: 2 << 20}, names); !errors.Is(err, paddock.Exhausted) {
		t.Errorf("a million files into a disk of 2 MiB: %v", err)
	}
	if many > 20_000 {
		t.Errorf("%d files were read before it was refused", many)
	}
}
