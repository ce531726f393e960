package file

import (
	"strconv"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/sim/command"
	"github.com/paddock-sandbox/paddock/internal/sim/kernel"
	"github.com/paddock-sandbox/paddock/internal/sim/vfs"
)

// backup is how files are kept that are about to be replaced.
type backup struct {
	on     bool
	how    string // simple, numbered or existing
	suffix string
}

// backupOptions are those of cp, mv, ln and install.
func backupOptions(o ...command.Option) []command.Option {
	return append(o,
		command.Option{Long: "backup", Arg: command.Optional, Name: "CONTROL", Help: "make a backup of each existing destination file"},
		command.Option{Short: 'b', Help: "like --backup but does not accept an argument"},
		command.Option{Short: 'S', Long: "suffix", Arg: command.Required, Name: "SUFFIX", Help: "override the usual backup suffix"},
	)
}

// newBackup reads those options.
func newBackup(t *kernel.Task, s *command.Spec, a *command.Args) (b backup, status int, ok bool) {
	control, given := a.Value("backup")
	b.on = given || a.Has("b") || a.Has("backup")
	b.suffix = t.Getenv("SIMPLE_BACKUP_SUFFIX")
	if v, given := a.Value("S"); given {
		b.suffix, b.on = v, true
	}
	if b.suffix == "" || strings.Contains(b.suffix, "/") {
		b.suffix = "~"
	}
	if !b.on {
		return b, 0, true
	}
	option := "backup type"
	if control == "" {
		control, option = t.Getenv("VERSION_CONTROL"), "$VERSION_CONTROL"
	}
	if control == "" {
		control = "existing"
	}
	how, err := command.Choice(control, []string{"none", "off", "simple", "never", "existing", "nil", "numbered", "t"})
	if err != nil {
		t.Errorf("%s %s for %s", err, command.Quote(control), command.Quote(option))
		_, _ = t.Write(2, []byte("Valid arguments are:\n  - ‘none’, ‘off’\n  - ‘simple’, ‘never’\n  - ‘existing’, ‘nil’\n  - ‘numbered’, ‘t’\n"))
		_, _ = t.Write(2, []byte("Try '"+t.Name()+" --help' for more information.\n"))
		return b, max(s.Exit, 1), false
	}
	switch how {
	case "none", "off":
		b.on = false
	case "simple", "never":
		b.how = "simple"
	case "existing", "nil":
		b.how = "existing"
	case "numbered", "t":
		b.how = "numbered"
	}
	return b, 0, true
}

// name gives the name that a file is to be kept under.
func (b backup) name(v *vfs.View, file string) string {
	if b.how == "simple" {
		return file + b.suffix
	}
	prefix := base(file) + ".~"
	most := 0
	names, err := v.Names(parent(file))
	if err != nil {
		names = nil // then making the backup fails, and says why
	}
	for _, n := range names {
		if s, ok := strings.CutPrefix(n, prefix); ok {
			if s, ok = strings.CutSuffix(s, "~"); ok {
				if k, err := strconv.Atoi(s); err == nil && k > most && k < 1<<40 {
					most = k
				}
			}
		}
	}
	if most == 0 && b.how == "existing" {
		return file + b.suffix
	}
	return file + ".~" + strconv.Itoa(most+1) + "~"
}
