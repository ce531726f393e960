package box

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/guest"
)

func FuzzGitDir(f *testing.F) {
	for _, data := range []string{
		"gitdir: real", "gitdir: real\n", "gitdir: ./real/\r\n", "gitdir: ../../../../etc", "gitdir: /", "gitdir:real", "gitdir: ", "gitdir: link",
		"gitdir: real\x00", "gitdir: real\ngitdir: /etc", "gitdir: loop", "gitdir: new\nline", "gitdir: \xff", "", "\n\n", "ref: refs/heads/main",
		"gitdir: " + strings.Repeat("./", 2040) + "real", "gitdir: " + strings.Repeat("./", 2100) + "real", strings.Repeat("x", 5000),
	} {
		f.Add([]byte(data))
	}
	dir, err := filepath.EvalSymlinks(f.TempDir())
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range []string{"real", "new\nline"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			f.Fatal(err)
		}
	}
	for name, to := range map[string]string{"link": "real", "loop": "loop"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			f.Fatal(err)
		}
	}
	file := filepath.Join(dir, ".git")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(file, data, 0o600); err != nil {
			t.Fatal(err)
		}
		real, ok := gitDir(file)
		path, said := bytes.CutPrefix(bytes.TrimSpace(data), []byte("gitdir: "))
		to := string(path)
		if !filepath.IsAbs(to) {
			to = filepath.Join(dir, to)
		}
		want, err := filepath.EvalSymlinks(to)
		if should := said && err == nil && len(data) <= 4096+16; ok != should || ok && real != want {
			t.Fatalf("%q leads to %q, %v; want %q, %v", data, real, ok, want, should)
		}
		if !ok {
			return
		}
		if again, err := filepath.EvalSymlinks(real); err != nil || again != real || !filepath.IsAbs(real) || filepath.Clean(real) != real {
			t.Fatalf("%q leads to %q, which is no real path: %v", data, real, err)
		}
	})
}

func TestOnlyAnOrdinaryFileSaysWhereTheRepositoryIs(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(dir+"/file", []byte("gitdir: ."), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(dir+"/fifo", 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	if _, ok := gitDir(dir + "/file"); !ok {
		t.Error("the ordinary file is refused")
	}
	for _, name := range []string{"fifo", "link", "", "missing"} {
		if real, ok := gitDir(filepath.Join(dir, name)); ok {
			t.Errorf("%q leads to %q", name, real)
		}
	}
}

func FuzzLookup(f *testing.F) {
	for _, data := range []string{
		"root:x:0:0:root:/root:/bin/bash\nuser:x:1000:1000::/home/user:/bin/sh\n", "user:x:1000:1000::/home/user:/bin/sh",
		"user:x:1000:1000::/home/user", "user:x:1000:1000::/home/user:/bin/sh:more", "user:x:-1:-1::/:/", "user:x:+1000:01000:::",
		"user:x:99999999999999999999:0::/:/", "../../etc:x:1000:1000::x:/bin/sh", ":x:1000:1000:::", "user:x:1000:1000::/home/../etc:/bin/../x\r\n",
		"\x00:x:1000:1000:\x00:\x00:\x00", "\n\n:::::: \n", "user:x: 1000:1000::/:/", "user:x:0x3e8:1e3::/:/",
		strings.Repeat("x", 70_000) + "\nuser:x:1000:1000::/home/user:/bin/sh\n", strings.Repeat("a:x:5:5::/:/\n", 5000),
	} {
		f.Add([]byte(data), 1000, "user")
	}
	base := f.TempDir()
	if err := os.Mkdir(base+"/etc", 0o755); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte, uid int, name string) {
		if err := os.WriteFile(base+"/etc/passwd", data, 0o600); err != nil {
			t.Fatal(err)
		}
		// A match is a whole line of the file, and the first one.
		check := func(match func(guest.User) bool) {
			seen := 0
			u, ok := lookup(tree{base: base}, func(u guest.User) bool {
				seen++
				return match(u)
			})
			if !ok {
				return
			}
			if !match(u) || strings.ContainsAny(u.Name+u.Home+u.Shell, ":\n") {
				t.Fatalf("%q gives %+v", data, u)
			}
			nth := 0
			for line := range strings.SplitSeq(string(data), "\n") {
				p := strings.Split(strings.TrimSuffix(line, "\r"), ":")
				if len(p) != 7 {
					continue
				}
				lineUID, err1 := strconv.Atoi(p[2])
				lineGID, err2 := strconv.Atoi(p[3])
				if err1 != nil || err2 != nil {
					continue
				}
				if nth++; nth == seen {
					if (guest.User{Name: p[0], UID: lineUID, GID: lineGID, Home: p[5], Shell: p[6]}) != u {
						t.Fatalf("%q gives %+v, which is not line %q", data, u, line)
					}
					return
				}
			}
			t.Fatalf("%q gives %+v, which is in no line", data, u)
		}
		check(func(u guest.User) bool { return u.UID == uid })
		check(func(u guest.User) bool { return u.Name == name })
	})
}
