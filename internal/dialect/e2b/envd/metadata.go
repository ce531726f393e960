package envd

import (
	"context"
	"fmt"
	"net/http"
	"path"
	"strings"
	"sync"
)

// Bounds of file metadata. The first two are E2B's.
const (
	maxKey       = 246  // bytes
	maxMetadata  = 4096 // bytes for one file
	maxDescribed = 10_000
	maxAbout     = 8 << 20 // bytes for all files of a Box
	aboutCost    = 256     // estimated overhead of a file in bytes
)

// metadataPrefix is the prefix of the headers that carry metadata.
const metadataPrefix = "X-Metadata-"

// metadata has the metadata that was sent with uploaded files, by resolved path. It is kept
// here and not in the sandbox. So it ends with the Box, and no command changes it: not by
// moving or replacing a file, nor by setting extended attributes.
type metadata struct {
	mu    sync.Mutex
	files map[string]map[string]string // guarded by mu; the inner maps are immutable
	size  int                          // guarded by mu; bytes of all entries
}

func costOf(name string, about map[string]string) int {
	n := aboutCost + len(name)
	for k, v := range about {
		n += len(k) + len(v)
	}
	return n
}

// drop removes an entry. mu is held.
func (m *metadata) drop(name string) {
	if about, ok := m.files[name]; ok {
		m.size -= costOf(name, about)
		delete(m.files, name)
	}
}

// keep adds an entry, and drops others beyond the bound. mu is held.
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

// set replaces the metadata of a file.
func (m *metadata) set(name string, about map[string]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.drop(name)
	if len(about) > 0 {
		m.keep(name, about)
	}
}

// move renames the entries of a file or directory.
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

// remove drops the entries of a file, or of a directory and its contents.
func (m *metadata) remove(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for other := range m.files {
		if other == name || strings.HasPrefix(other, name+"/") {
			m.drop(other)
		}
	}
}

// key returns the resolved path of a file, which need not exist.
func (b *Box) key(ctx context.Context, name string) string {
	dir, _, err := b.walker().real(ctx, path.Dir(name))
	if err != nil {
		return name
	}
	return path.Join(dir, path.Base(name))
}

// about parses the metadata in the headers of an upload.
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
