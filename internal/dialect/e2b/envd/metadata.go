package envd

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"
)

// Bounds of what is kept of files. The first two are E2B's.
const (
	maxKey       = 246  // bytes
	maxMetadata  = 4096 // bytes, of one file
	maxDescribed = 10_000
	maxAbout     = 8 << 20 // bytes, of all files of a Box
	aboutCost    = 256     // bytes of a file beside names and values, about
)

// metadataPrefix begins the headers that describe a file.
const metadataPrefix = "X-Metadata-"

// metadata is what was told of files when they were written, by where they really
// are. It is kept here and not in the sandbox: so it goes with the Box, and what
// commands do to files (move them, replace them, describe them by extended
// attributes) does not change it.
type metadata struct {
	mu    sync.Mutex
	files map[string]map[string]string // guarded by mu; those are never changed
	size  int                          // guarded by mu; bytes of all of them
}

func costOf(name string, about map[string]string) int {
	n := aboutCost + len(name)
	for k, v := range about {
		n += len(k) + len(v)
	}
	return n
}

// drop needs mu.
func (m *metadata) drop(name string) {
	if about, ok := m.files[name]; ok {
		m.size -= costOf(name, about)
		delete(m.files, name)
	}
}

// keep needs mu. When too much is known it forgets some.
func (m *metadata) keep(name string, about map[string]string) {
	m.drop(name)
	if m.files == nil {
		m.files = map[string]map[string]string{}
	}
	m.size += costOf(name, about)
	for other := range m.files {
		if len(m.files) < maxDescribed && m.size <= maxAbout {
			break
		}
		m.drop(other)
	}
	m.files[name] = about
}

func (m *metadata) empty() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return len(m.files) == 0
}

func (m *metadata) get(name string) map[string]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.files[name]
}

// set replaces what is known of a file. When too many are known it forgets some.
func (m *metadata) set(name string, about map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(name)
	if len(about) > 0 {
		m.keep(name, about)
	}
}

// move follows a file or directory to its new name.
func (m *metadata) move(from, to string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	moved := map[string]map[string]string{}
	for name, about := range m.files {
		if name == to || strings.HasPrefix(name, to+"/") {
			m.drop(name)
		}
		if name == from || strings.HasPrefix(name, from+"/") {
			m.drop(name)
			moved[to+strings.TrimPrefix(name, from)] = about
		}
	}
	for name, about := range moved {
		m.keep(name, about)
	}
}

// remove forgets a file, or a directory and what was in it.
func (m *metadata) remove(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for other := range m.files {
		if other == name || strings.HasPrefix(other, name+"/") {
			m.drop(other)
		}
	}
}

// key gives where a file really is, though it may not be there itself.
func (b *Box) key(ctx context.Context, name string) string {
	dir, _, err := b.walker().real(ctx, path.Dir(name))
	if err != nil {
		return name
	}
	return path.Join(dir, path.Base(name))
}

// about reads what the headers of an upload tell of its files.
func about(h http.Header) (map[string]string, error) {
	list := map[string]string{}
	size := 0
	for name, values := range h {
		if len(name) < len(metadataPrefix) || !strings.EqualFold(name[:len(metadataPrefix)], metadataPrefix) {
			continue
		}
		key := strings.ToLower(name[len(metadataPrefix):])
		switch {
		case key == "":
			return nil, invalid("a key of metadata is empty")
		case len(key) > maxKey:
			return nil, invalid(fmt.Sprintf("the key %.32q… of metadata has more than %d bytes", key, maxKey))
		case len(values) != 1:
			return nil, invalid(fmt.Sprintf("the key %q of metadata has several values", key))
		}
		for _, c := range []byte(values[0]) {
			if c < 0x20 || c > 0x7e {
				return nil, invalid(fmt.Sprintf("the value of the key %q of metadata is not printable ASCII", key))
			}
		}
		if size += len(key) + len(values[0]); size > maxMetadata {
			return nil, invalid(fmt.Sprintf("metadata has more than %d bytes", maxMetadata))
		}
		list[key] = values[0]
	}
	if len(list) == 0 {
		return nil, nil
	}
	return list, nil
}
