package netstack

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"sync"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

// MaxNames is the largest number of names in a table.
const MaxNames = 65536

// A NameTable numbers the names that a sandbox asked for, and gives each an IPv4 and an IPv6 address that stand for it
// in that sandbox. A name keeps its number. The zero value is empty. It is safe for concurrent use.
type NameTable struct {
	mu      sync.RWMutex
	numbers map[decide.Host]uint32 // guarded by mu
	names   []decide.Host          // guarded by mu; by number
}

// NewNameTable makes a table of names in the order that Names returned. More than MaxNames, a name twice, or an address
// is Invalid.
func NewNameTable(names []string) (*NameTable, error) {
	t := &NameTable{}
	if len(names) > MaxNames {
		return nil, fmt.Errorf("%d names; a sandbox has at most %d: %w", len(names), MaxNames, paddock.Invalid)
	}
	for i, s := range names {
		h, err := decide.ParseHost(s)
		if err != nil {
			return nil, fmt.Errorf("names[%d]: %w", i, err)
		}
		if _, _, err := t.Add(h); err != nil {
			return nil, fmt.Errorf("names[%d]: %w", i, err)
		}
		if len(t.names) != i+1 {
			return nil, fmt.Errorf("names[%d]: %s is there twice: %w", i, h, paddock.Invalid)
		}
	}
	return t, nil
}

// Add returns the addresses of a name and numbers the name first if it is new. A full table is Exhausted; an address as
// host is Invalid.
func (t *NameTable) Add(h decide.Host) (v4, v6 netip.Addr, err error) {
	if _, ok := h.Addr(); ok || !h.IsValid() {
		return v4, v6, fmt.Errorf("host %q: not a name: %w", h, paddock.Invalid)
	}
	t.mu.RLock()
	n, ok := t.numbers[h]
	t.mu.RUnlock()
	if ok {
		return address4(n), address6(n), nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if n, ok = t.numbers[h]; !ok {
		if len(t.names) >= MaxNames {
			return v4, v6, fmt.Errorf("this sandbox has asked for %d names: %w", MaxNames, paddock.Exhausted)
		}
		if t.numbers == nil {
			t.numbers = map[decide.Host]uint32{}
		}
		n = uint32(len(t.names))
		t.numbers[h] = n
		t.names = append(t.names, h)
	}
	return address4(n), address6(n), nil
}

// Lookup returns the name that an address stands for, and whether it stands for one.
func (t *NameTable) Lookup(a netip.Addr) (decide.Host, bool) {
	n, ok := number(a)
	if !ok {
		return decide.Host{}, false
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	if int(n) >= len(t.names) {
		return decide.Host{}, false
	}
	return t.names[n], true
}

// Names returns all names in the order of their numbers.
func (t *NameTable) Names() []string {
	t.mu.RLock()
	defer t.mu.RUnlock()
	names := make([]string, len(t.names))
	for i, h := range t.names {
		names[i] = h.String()
	}
	return names
}

// Synthetic reports whether an address belongs to the range that stands for names, even if no name has it. No host has
// such an address.
func Synthetic(a netip.Addr) bool {
	_, ok := number(a)
	return ok
}

// Number n of a name is 198.18.1.0 + n and fd7a:6f74::1:0 + n.
const base4 = 198<<24 | 18<<16 | 1<<8

var base6 = [16]byte{0: 0xfd, 1: 0x7a, 2: 0x6f, 3: 0x74, 13: 1}

func address4(n uint32) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], base4+n)
	return netip.AddrFrom4(b)
}

func address6(n uint32) netip.Addr {
	b := base6
	binary.BigEndian.PutUint16(b[14:], uint16(n))
	return netip.AddrFrom16(b)
}

func number(a netip.Addr) (uint32, bool) {
	switch a = a.Unmap(); {
	case a.Is4():
		b := a.As4()
		n := binary.BigEndian.Uint32(b[:]) - base4 // wraps around below base4
		return n, n < MaxNames
	case a.Is6() && a.Zone() == "":
		b := a.As16()
		n := uint32(binary.BigEndian.Uint16(b[14:]))
		return n, a == address6(n)
	}
	return 0, false
}
