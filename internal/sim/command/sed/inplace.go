package sed

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/linux"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// A place is a file that is edited in place: what is written goes to another
// one, which takes its name in the end.
type place struct {
	m    *machine
	name string
	temp string
	info vfs.Info
	out  *output
}

// edit begins to edit the file that is open in place. It is false where that
// cannot be.
func (in *input) edit(name string) bool {
	m := in.m
	info, err := m.t.View.Stat(name)
	if err == nil && !info.IsRegular() {
		m.die(trouble, "couldn't edit %s: not a regular file", name)
	}
	if err != nil {
		in.lacks(name, err)
		return false
	}
	p := &place{m: m, name: name, info: info, out: &output{m: m}}
	for n := m.t.PID; ; n++ {
		p.temp = path.Join(path.Dir(name), fmt.Sprintf("sed%06d", n))
		p.out.file, err = command.Create(m.t, p.temp, linux.O_EXCL)
		if !errors.Is(err, linux.EEXIST) {
			break
		}
		m.t.Step(1)
	}
	if err != nil {
		m.die(trouble, "couldn't open temporary file %s: %s", p.temp, reason(err))
	}
	p.out.name = p.temp
	p.out.w = command.NewWriter(p.out.file, p.out.fail)
	in.place = p
	m.out = p.out
	return true
}

// settle gives the new file its name.
func (p *place) settle() {
	m := p.m
	p.out.w.Flush()
	p.out.close()
	m.out = m.stdout
	v := &m.t.View
	// The owner may not be given away; then it is who edits.
	_ = v.Chown(p.temp, p.info.UID, p.info.GID, false)
	if err := v.Chmod(p.temp, p.info.Mode&0o7777); err != nil {
		p.fail(p.temp, err)
	}
	if m.o.suffix != "" {
		backup := p.backup()
		if err := v.Rename(p.name, backup); err != nil && backup != p.name {
			p.fail(p.name, err)
		}
	}
	if err := v.Rename(p.temp, p.name); err != nil {
		p.fail(p.temp, err)
	}
}

func (p *place) fail(name string, err error) {
	_ = p.m.t.View.Unlink(p.temp)
	p.m.die(trouble, "cannot rename %s: %s", name, reason(err))
}

// backup names the file that keeps what was there.
func (p *place) backup() string {
	suffix := p.m.o.suffix
	if !strings.Contains(suffix, "*") {
		return p.name + suffix
	}
	// The name goes in with its directory, as with GNU's.
	return kernel.ReplaceAll(p.m.t, suffix, "*", p.name)
}

// abandon throws the new file away.
func (p *place) abandon() {
	if p.out.file != nil {
		p.out.close()
		_ = p.m.t.View.Unlink(p.temp)
	}
}
