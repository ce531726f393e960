package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/store"
	"github.com/paddock-sandbox/paddock/internal/store/storetest"
)

// What a Create waits for: two commits, each on disk.
func BenchmarkCreateOnDisk(b *testing.B) {
	s := storetest.SQLite().New(b)
	if err := s.AddTenant(b.Context(), store.Tenant{ID: "acme"}); err != nil {
		b.Fatal(err)
	}
	n := 0
	for b.Loop() {
		n++
		sb := box(paddock.ID(fmt.Sprint("b", n)), "acme")
		if err := s.AddSandbox(b.Context(), sb, welcome); err != nil {
			b.Fatal(err)
		}
		if err := s.ReadySandbox(b.Context(), sb.Token, sb.ID, sb.Tier); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		if err := s.ForgetSandbox(b.Context(), sb.Token); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}

// What each request waits for, that has a key.
func BenchmarkFindAKey(b *testing.B) {
	s := storetest.SQLite().New(b)
	if err := s.AddTenant(b.Context(), store.Tenant{ID: "acme"}); err != nil {
		b.Fatal(err)
	}
	if err := s.AddKey(b.Context(), store.Key{ID: "k", Tenant: "acme"}); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := s.Key(b.Context(), "k"); err != nil {
			b.Fatal(err)
		}
	}
}

// What others who write wait for once in an hour: records of 200 short sandboxes become
// one of a day.
func BenchmarkFoldHours(b *testing.B) {
	s := storetest.SQLite().New(b)
	if err := s.AddTenant(b.Context(), store.Tenant{ID: "acme"}); err != nil {
		b.Fatal(err)
	}
	n := 0
	for b.Loop() {
		b.StopTimer()
		var list []store.Record
		for range 200 {
			n++
			list = append(list, hour(fmt.Sprint("t", n), n%24))
		}
		if err := s.PutRecords(b.Context(), list); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
		if got, err := s.FoldRecords(b.Context(), day.Add(24*time.Hour)); got != 200 || err != nil {
			b.Fatal(got, err)
		}
	}
}
