package netstack

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

func host(t testing.TB, s string) decide.Host {
	t.Helper()
	h, err := decide.ParseHost(s)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func TestANameHasTheSameAddressesForEver(t *testing.T) {
	var table NameTable
	for range 2 {
		for i, want := range []string{"198.18.1.0 fd7a:6f74::1:0", "198.18.1.1 fd7a:6f74::1:1", "198.18.1.2 fd7a:6f74::1:2"} {
			v4, v6, err := table.Add(host(t, fmt.Sprintf("n%d.example.com", i)))
			if err != nil || v4.String()+" "+v6.String() != want {
				t.Errorf("n%d: %s %s, %v; want %s", i, v4, v6, err, want)
			}
		}
	}
	v4, _, _ := table.Add(host(t, "N1.Example.COM."))
	if v4.String() != "198.18.1.1" {
		t.Errorf("another spelling has %s", v4)
	}
	again, err := NewNameTable(table.Names())
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(again.Names(), table.Names()) {
		t.Errorf("restored %v, want %v", again.Names(), table.Names())
	}
	for i := range 3 {
		want := host(t, fmt.Sprintf("n%d.example.com", i))
		for _, a := range []netip.Addr{address4(uint32(i)), address6(uint32(i)), netip.AddrFrom16(address4(uint32(i)).As16())} {
			if got, ok := again.Lookup(a); !ok || got != want {
				t.Errorf("%s stands for %q, want %q", a, got, want)
			}
		}
	}
}

func TestAddressesThatStandForNothing(t *testing.T) {
	table, err := NewNameTable([]string{"example.com"})
	if err != nil {
		t.Fatal(err)
	}
	for s, synthetic := range map[string]bool{
		"198.18.1.1": true, "198.19.0.255": true, "fd7a:6f74::1:ffff": true,
		"198.18.0.255": false, "198.19.1.0": false, "198.18.0.1": false, "8.8.8.8": false, "0.0.0.0": false, "255.255.255.255": false,
		"fd7a:6f74::1": false, "fd7a:6f74::2:0": false, "fd7a:6f74::1:1:0": false, "::1": false, "fd7a:6f74::1:0%eth0": false,
	} {
		a := netip.MustParseAddr(s)
		if got := Synthetic(a); got != synthetic {
			t.Errorf("%s is synthetic: %v, want %v", s, got, synthetic)
		}
		if h, ok := table.Lookup(a); ok {
			t.Errorf("%s stands for %s", s, h)
		}
	}
	if Synthetic(netip.Addr{}) {
		t.Error("no address is synthetic")
	}
}

func TestATableIsBounded(t *testing.T) {
	names := make([]string, MaxNames)
	for i := range names {
		names[i] = fmt.Sprintf("n%d.example.com", i)
	}
	table, err := NewNameTable(names)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := table.Add(host(t, "one-more.example.com")); !errors.Is(err, paddock.Exhausted) {
		t.Errorf("one more: %v", err)
	}
	if v4, v6, err := table.Add(host(t, names[MaxNames-1])); err != nil || v4.String() != "198.19.0.255" || v6.String() != "fd7a:6f74::1:ffff" {
		t.Errorf("the last one: %s, %s, %v", v4, v6, err)
	}
	if h, ok := table.Lookup(address4(MaxNames - 1)); !ok || h.String() != names[MaxNames-1] {
		t.Errorf("the last one: %s", h)
	}
	if _, err := NewNameTable(slices.Concat(names, []string{"one-more.example.com"})); !errors.Is(err, paddock.Invalid) {
		t.Errorf("too many: %v", err)
	}
}

func TestListsThatAreNoTablesAreInvalid(t *testing.T) {
	for _, names := range [][]string{{"a.example.com", "A.example.com."}, {"1.2.3.4"}, {"::1"}, {"a b"}, {""}} {
		if _, err := NewNameTable(names); !errors.Is(err, paddock.Invalid) {
			t.Errorf("%q: %v", names, err)
		}
	}
	if _, _, err := new(NameTable).Add(decide.Host{}); !errors.Is(err, paddock.Invalid) {
		t.Errorf("no host: %v", err)
	}
}

func TestATableIsUsedByMany(t *testing.T) {
	var table NameTable
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for i := range 200 {
				h := host(t, fmt.Sprintf("n%d.example.com", i))
				v4, v6, err := table.Add(h)
				if err != nil {
					t.Error(err)
				}
				for _, a := range []netip.Addr{v4, v6} {
					if got, ok := table.Lookup(a); !ok || got != h {
						t.Errorf("%s stands for %s, want %s", a, got, h)
					}
				}
			}
		})
	}
	all.Wait()
	if n := len(table.Names()); n != 200 {
		t.Errorf("%d names", n)
	}
}
