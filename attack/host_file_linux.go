package attack

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/attack/protocol"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// refused returns a try of the host that was refused.
func refused(name string, err error) protocol.Try {
	return protocol.Try{Name: name, Outcome: protocol.Denied, Errno: strings.ReplaceAll(paddock.KindOf(err).Error(), " ", "-"), Detail: err.Error()}
}

func reached(name, format string, args ...any) protocol.Try {
	return protocol.Try{Name: name, Outcome: protocol.Reached, Detail: fmt.Sprintf(format, args...)}
}

func inside(name, format string, args ...any) protocol.Try {
	return protocol.Try{Name: name, Outcome: protocol.Inside, Detail: fmt.Sprintf(format, args...)}
}

// broken returns a step that should have worked and did not.
func broken(name string, err error) protocol.Try {
	return protocol.Try{Name: name, Outcome: "broken", Detail: err.Error()}
}

// brief bounds one call of the host.
func (x *trial) brief(d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(x.t.Context(), d)
}

// box makes a sandbox for one try. change may change its spec.
func (x *trial) box(change func(*paddock.Spec)) (paddock.Sandbox, error) {
	ctx, cancel := x.brief(patience)
	defer cancel()
	s := x.spec()
	if change != nil {
		change(&s)
	}
	x.fit(&s)
	return x.driver.Create(ctx, s)
}

// attackIn runs the attacker in sb, removes sb, and names the tries.
func (x *trial) attackIn(sb paddock.Sandbox, name string) []protocol.Try {
	ctx, cancel := x.brief(patience)
	defer cancel()
	report, err := x.guest(ctx, sb, x.c.ID)
	err = errors.Join(err, sb.Remove(ctx))
	if err != nil {
		return []protocol.Try{broken(name, err)}
	}
	for i := range report.Tries {
		report.Tries[i].Name = name + report.Tries[i].Name
	}
	return report.Tries
}

// followLinks is the host's part of A04: its tools use names that the guest made, and the
// evidence shows whether they left the sandbox.
func followLinks(x *trial) []protocol.Try {
	ctx, cancel := x.brief(time.Minute)
	defer cancel()
	fs, work := x.sb.FS(), x.w.brief.Work
	var tries []protocol.Try
	note := func(name string, err error) {
		if err != nil {
			tries = append(tries, refused(name, err))
			return
		}
		tries = append(tries, inside(name, "answered"))
	}
	write := func(name string) error {
		w, err := fs.Create(ctx, name, paddock.CreateOptions{Append: true})
		if err != nil {
			return err
		}
		_, err = io.WriteString(w, "from a tool of the host\n")
		return errors.Join(err, w.Close())
	}
	read := func(name string) error {
		r, err := fs.Open(ctx, name, paddock.OpenOptions{Length: 4096})
		if err != nil {
			return err
		}
		data, err := io.ReadAll(io.LimitReader(r, 4096))
		x.out = append(x.out, data...) // searched for tokens
		return errors.Join(err, r.Close())
	}
	for _, n := range []string{"report.txt", "outdir/MARK-a04", "up/.bashrc", "etc/MARK-a04"} {
		note("write "+n, write(work+"/"+strings.ReplaceAll(n, "MARK", x.w.brief.Marker)))
	}
	for _, n := range []string{"result.key", "outdir/.ssh/id_ed25519", "up/.aws/credentials"} {
		note("read "+n, read(work+"/"+n))
	}
	note("mkdir through a link", fs.Mkdir(ctx, work+"/outdir/"+x.w.brief.Marker+"-a04d", paddock.MkdirOptions{Parents: true}))
	note("rename through a link", fs.Rename(ctx, work+"/outdir/outside.txt", work+"/pulled.txt"))
	note("chmod through a link", fs.Chmod(ctx, work+"/report.txt", 0o600))
	note("remove through a link", fs.Remove(ctx, work+"/outdir/.gitconfig", false))
	// Removing a tree with a link to the home removes only the link.
	note("remove a tree", fs.Remove(ctx, work+"/tidy", true))
	listed := 0
	for info, err := range fs.List(ctx, work+"/outdir", 8) {
		if err != nil {
			note("list through a link", err)
			break
		}
		listed++
		x.out = append(x.out, info.Name...)
	}
	tries = append(tries, inside("list through a link", "%d names", listed))
	return tries
}

// readSpecial is the host's part of A16.
func readSpecial(x *trial) []protocol.Try {
	fs, work := x.sb.FS(), x.w.brief.Work
	bounded := func(name string, f func(ctx context.Context) error) protocol.Try {
		const most = 2 * time.Second
		ctx, cancel := x.brief(most)
		defer cancel()
		done := make(chan error, 1)
		go func() { done <- f(ctx) }()
		grace := time.NewTimer(most + 5*time.Second)
		defer grace.Stop()
		select {
		case err := <-done:
			if err != nil {
				return refused(name, err)
			}
			return inside(name, "answered")
		case <-grace.C:
			return reached(name, "the host hangs, past the deadline of its call")
		}
	}
	names := []string{"fifo.txt", "endless.txt", "tty.txt", "loop.txt", "fd.txt", "socket.txt"}
	tries := make([]protocol.Try, 2*len(names)+3)
	var wg sync.WaitGroup // most of it waits
	for i, n := range names {
		wg.Go(func() {
			tries[2*i] = bounded("read "+n, func(ctx context.Context) error {
				r, err := fs.Open(ctx, work+"/"+n, paddock.OpenOptions{Length: 1 << 16})
				if err != nil {
					return err
				}
				// An opened FIFO may deliver nothing; closing ends the read.
				stop := context.AfterFunc(ctx, func() { _ = r.Close() })
				_, err = io.Copy(io.Discard, io.LimitReader(r, 1<<16))
				if stop() {
					err = errors.Join(err, r.Close())
				}
				return err
			})
			tries[2*i+1] = bounded("stat "+n, func(ctx context.Context) error {
				_, err := fs.Stat(ctx, work+"/"+n)
				return err
			})
		})
	}
	wg.Go(func() {
		tries[2*len(names)] = bounded("write fifo-out.txt", func(ctx context.Context) error {
			w, err := fs.Create(ctx, work+"/fifo-out.txt", paddock.CreateOptions{})
			if err != nil {
				return err
			}
			return w.Close()
		})
	})
	wg.Wait()
	tries[2*len(names)+1] = bounded("list", func(ctx context.Context) error {
		for _, err := range fs.List(ctx, work, 3) {
			if err != nil {
				return err
			}
		}
		return nil
	})
	// The sandbox still works.
	last := bounded("afterwards", func(ctx context.Context) error {
		r, err := fs.Open(ctx, work+"/README.md", paddock.OpenOptions{})
		if err != nil {
			return fmt.Errorf("a plain file cannot be read any more: %w", err)
		}
		return r.Close()
	})
	if last.Outcome == protocol.Denied {
		last = reached("afterwards", "%s", last.Detail)
	}
	tries[2*len(names)+2] = last
	return tries
}

// swapWhileCreating is A05: another process with the same workspace swaps the denied
// directory with a link while Create looks at it.
func swapWhileCreating(x *trial) []protocol.Try {
	work := x.w.brief.Work
	dir, err := os.Open(work)
	if err != nil {
		return []protocol.Try{broken("open", err)}
	}
	defer dir.Close()
	if err := errors.Join(os.Mkdir(work+"/decoy", 0o755), os.Symlink("decoy", work+"/swapped")); err != nil {
		return []protocol.Try{broken("prepare", err)}
	}
	fd := int(dir.Fd())
	const exchange = 2
	swap := func() error { return sys.Renameat2(fd, "private", fd, "swapped", exchange) }
	var tries []protocol.Try
	for i := range 8 {
		stop, done := make(chan struct{}), make(chan int)
		go func() {
			n := 0
			for {
				select {
				case <-stop:
					done <- n
					return
				default:
					if swap() == nil {
						n++
					}
				}
			}
		}()
		sb, err := x.box(nil)
		close(stop)
		swaps := <-done
		if swaps%2 == 1 {
			if e := swap(); e != nil {
				return append(tries, broken("swap back", e))
			}
		}
		if info, e := os.Lstat(x.w.brief.DenyReadDir); e != nil || !info.IsDir() {
			return append(tries, broken("swap back", fmt.Errorf("%s is not the directory", x.w.brief.DenyReadDir)))
		}
		name := fmt.Sprintf("round %d: ", i+1)
		if err != nil {
			tries = append(tries, refused(name+"create", err))
			continue
		}
		tries = append(tries, x.attackIn(sb, name)...)
	}
	return tries
}

// lateForms is A10: the rule names a file that does not exist yet, exactly or by a pattern.
func lateForms(x *trial) []protocol.Try {
	late := x.w.brief.DenyReadLate
	token := x.w.token("the file that was made after the start")
	var tries []protocol.Try
	for _, form := range []struct{ name, rule string }{
		{"exact: ", late},
		{"pattern: ", filepath.Dir(late) + "/*.secret"},
	} {
		sb, err := x.box(func(s *paddock.Spec) { s.Policy.Files.DenyRead = append(s.Policy.Files.DenyRead, form.rule) })
		if err != nil {
			tries = append(tries, refused(form.name+"create", err))
			continue
		}
		tmp := x.w.brief.Home + "/late.tmp"
		if err := errors.Join(os.WriteFile(tmp, []byte(token+"\n"), 0o644), os.Rename(tmp, late)); err != nil {
			return append(tries, broken(form.name+"make the file", errors.Join(err, sb.Remove(x.t.Context()))))
		}
		tries = append(tries, x.attackIn(sb, form.name)...)
		for _, n := range []string{late, x.w.brief.Work + "/late-link", x.w.brief.Work + "/late-moved"} {
			if err := os.RemoveAll(n); err != nil {
				return append(tries, broken(form.name+"clean", err))
			}
		}
	}
	return tries
}

func plantHardlink(w *world) error {
	w.brief.Hard = w.brief.Work + "/outside-inside.txt"
	return os.Link(w.brief.Home+"/outside.txt", w.brief.Hard)
}

// hardlink is A11. A name in the workspace for a file outside is the caller's own doing.
// Paddock must refuse or report it.
func hardlink(x *trial) []protocol.Try {
	sb, err := x.box(nil)
	if err != nil {
		return []protocol.Try{refused("create", err)}
	}
	ctx, cancel := x.brief(time.Minute)
	defer cancel()
	st, err := sb.Status(ctx)
	if err != nil {
		return []protocol.Try{broken("status", errors.Join(err, sb.Remove(ctx)))}
	}
	told := false
	for _, f := range st.Enforced {
		told = told || strings.Contains(f.How+f.Cause, "hard link")
	}
	for _, r := range st.Refused {
		told = told || strings.Contains(r.Rule+r.What, "hard link")
	}
	name := "untold: "
	if told {
		name = "told: "
	}
	tries := x.attackIn(sb, name)
	if told {
		// The change is the reported one: include it in the stock.
		p := x.w.brief.Home + "/outside.txt"
		if info, err := os.Lstat(p); err == nil {
			x.w.outer[p] = fileState(p, info)
		}
	}
	return tries
}

// strangePaths is A22.
func strangePaths(x *trial) []protocol.Try {
	work, dir := x.w.brief.Work, x.w.brief.DenyReadDir
	odd := work + "/new\nline"
	if err := writeFile(odd+"/secret.txt", x.w.token("the directory with a newline")+"\n", 0o644); err != nil {
		return []protocol.Try{broken("prepare", err)}
	}
	var tries []protocol.Try
	for _, v := range []struct {
		name, rule, dir string
		refuse          bool // it cannot be enforced
	}{
		{"trailing slash: ", dir + "/", dir, false},
		{"dots: ", work + "/./scripts/../private", dir, false},
		{"double slash: ", work + "//private", dir, false},
		{"trailing dot: ", dir + "/.", dir, false},
		{"newline: ", odd, odd, false},
		{"NUL: ", dir + "\x00.txt", dir, true},
		{"too long: ", work + "/" + strings.Repeat("a/", 3000), dir, true},
		{"relative: ", "private", dir, true},
		{"empty: ", "", dir, true},
		{"home sign: ", "~/project/private", dir, true},
		{"not UTF-8: ", work + "/\xff\xfe", dir, false},
	} {
		sb, err := x.box(func(s *paddock.Spec) { s.Policy.Files.DenyRead = []string{x.w.brief.DenyReadFile, v.rule} })
		if err != nil {
			tries = append(tries, refused(v.name+"create", err))
			continue
		}
		if v.refuse {
			tries = append(tries, reached(v.name+"create", "a rule that names nothing was accepted"))
			if err := sb.Remove(x.t.Context()); err != nil {
				tries = append(tries, broken(v.name+"remove", err))
			}
			continue
		}
		if v.name == "not UTF-8: " {
			// It names nothing that exists, so only the other rules must hold. Try the
			// plainly denied file.
			x.w.brief.DenyReadDir = filepath.Dir(x.w.brief.DenyReadFile) + "/absent"
		} else {
			x.w.brief.DenyReadDir = v.dir
		}
		tries = append(tries, x.attackIn(sb, v.name)...)
		x.w.brief.DenyReadDir = dir
	}
	for _, v := range []struct {
		name  string
		mount paddock.Mount
	}{
		{"mount of a relative source: ", paddock.Mount{Source: "project"}},
		{"mount of nothing: ", paddock.Mount{Source: work + "/absent"}},
		{"mount with a NUL: ", paddock.Mount{Source: work + "/main.py\x00"}},
		{"mount at a relative target: ", paddock.Mount{Source: work, Target: "project"}},
		{"mount at a target with a NUL: ", paddock.Mount{Source: work, Target: "/x\x00y"}},
		{"mount over /proc: ", paddock.Mount{Source: work, Target: "/proc"}},
		{"mount over the root: ", paddock.Mount{Source: work, Target: "/", Write: true}},
	} {
		sb, err := x.box(func(s *paddock.Spec) { s.Mounts = append(s.Mounts, v.mount) })
		if err != nil {
			tries = append(tries, refused(v.name+"create", err))
			continue
		}
		tries = append(tries, reached(v.name+"create", "it was accepted"))
		if err := sb.Remove(x.t.Context()); err != nil {
			tries = append(tries, broken(v.name+"remove", err))
		}
	}
	for _, p := range []string{"", "..", "../x", "/etc/passwd", "a\x00b", strings.Repeat("a", 5000)} {
		name := fmt.Sprintf("protected name %.12q: ", p)
		sb, err := x.box(func(s *paddock.Spec) { s.Policy.Files.Protect = []string{p} })
		if err != nil {
			tries = append(tries, refused(name+"create", err))
			continue
		}
		tries = append(tries, reached(name+"create", "it was accepted"))
		if err := sb.Remove(x.t.Context()); err != nil {
			tries = append(tries, broken(name+"remove", err))
		}
	}
	return tries
}

// protectScripts is C08: the policy protects some names.
func protectScripts(_ *world, s *paddock.Spec) {
	s.Policy.Files.Protect = []string{"ci/deploy.yaml", "Justfile"}
}

func socketInWork(w *world) error {
	w.brief.Canary.InWork = w.brief.Work + "/host.sock"
	return nil
}

// plantSUID is P19: a mount has a set-id program of root, if root made one (see furnish).
func plantSUID(w *world) error {
	name := w.brief.Place + "/bin/set-id"
	if _, err := os.Lstat(name); err == nil {
		w.brief.SUID = name
	}
	return nil
}
