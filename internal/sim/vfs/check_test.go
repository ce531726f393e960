package vfs

import "testing"

// CheckForTest counts an FS anew and compares with what it believes.
func CheckForTest(t testing.TB, f *FS) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	var count, used, named int64
	links := map[Ino]int32{}
	f.nodes.each(func(_ uint64, n *node) bool {
		n.entries.after("", func(name string, ino Ino) bool {
			named += nameCost + int64(len(name))
			links[ino]++
			return true
		})
		return true
	})
	for _, m := range f.mounts {
		links[m.covered]++
	}
	f.nodes.each(func(key uint64, n *node) bool {
		count++
		used += n.held
		named += int64(len(n.target))
		var held int64
		n.pages.each(func(i uint64, p *page) bool {
			held += charge(int64(len(p.b)))
			if int64(i)*pageSize >= n.size {
				t.Errorf("file %d has %d bytes and a page at %d", n.ino, n.size, i*pageSize)
			}
			return true
		})
		if held != n.held {
			t.Errorf("file %d holds %d, believes %d", n.ino, held, n.held)
		}
		if key != uint64(n.ino) {
			t.Errorf("file %d stands at %d", n.ino, key)
		}
		if n.ino != Root && links[n.ino] != n.nlink {
			t.Errorf("file %d has %d names, believes %d", n.ino, links[n.ino], n.nlink)
		}
		if n.nlink == 0 && f.open[n.ino] == 0 {
			t.Errorf("file %d has neither name nor handle", n.ino)
		}
		return true
	})
	if len(f.mounts) == 1 {
		f.nodes.each(func(_ uint64, d *node) bool {
			size, err := f.length(d)
			if err != nil || d.nlink == 0 {
				return true
			}
			d.entries.after("", func(name string, _ Ino) bool {
				if n := size + int64(len(name)) + 1; d.isDir() && n > f.longest {
					t.Errorf("%q in directory %d has a path of %d bytes, believes that none has more than %d", name, d.ino, n, f.longest)
				}
				return true
			})
			return true
		})
	}
	if count != f.count || used != f.used || named != f.named {
		t.Errorf("counted %d files, %d bytes, %d of names; believes %d, %d, %d", count, used, named, f.count, f.used, f.named)
	}
}
