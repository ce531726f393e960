package serve

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/tracing"
)

// followEvery is how often it is looked whether files have changed.
const followEvery = 10 * time.Second

// A reload is what changes a server's settings while it runs.
type reload struct {
	name  string
	seen  time.Time          // change of the file that was read last
	file  map[string]setting // what it said of what takes effect, else at the start
	given map[string]bool    // flags of the command line, which win
	flags *pflag.FlagSet
	f     *operateFlags
}

// reloaded are the keys that take effect without a restart: each changes a number that is
// asked each time. Others decide what was opened at the start, or what callers were told.
func reloaded() []string {
	return []string{"log-level", "max-connections", "max-connections-per-address"}
}

// serveAs serves as the flags and the configuration file say.
func serveAs(a *cli.App, c *cobra.Command, f *serveFlags) error {
	fs := c.Flags()
	if f.operate.config != "" {
		r := &reload{name: f.operate.config, seen: changed(f.operate.config), given: map[string]bool{}, flags: fs, f: &f.operate}
		fs.Visit(func(flag *pflag.Flag) { r.given[flag.Name] = true })
		var err error
		if r.file, err = configure(a, fs, r.name); err != nil {
			return err
		}
		f.operate.reload = r
	}
	if f.operate.check {
		return checkServe(c.Context(), a, f)
	}
	return serve(c.Context(), a, f)
}

// hangups are the signals that do not end a server, but have it read its file again.
func (f *operateFlags) hangups() []os.Signal {
	if f.reload == nil {
		return nil
	}
	return []os.Signal{syscall.SIGHUP}
}

// checkServe reads and checks what a server would be told at its start, and changes
// nothing: what can only be known by opening it (places, addresses, the database) is left.
func checkServe(ctx context.Context, a *cli.App, f *serveFlags) error {
	if _, err := f.sharedKey(a.Lookup); err != nil {
		return err
	}
	if err := f.check(); err != nil {
		return err
	}
	if err := checkTiers(a, f.tiers); err != nil {
		return err
	}
	if f.cert != "" {
		if _, err := openFiles(f, nil); err != nil {
			return err
		}
	}
	if !strings.HasPrefix(f.listen, "unix:") { // else there are no tenants
		if err := f.account.check(a); err != nil {
			return err
		}
	}
	t, err := tracing.Open(ctx, a.Lookup, cli.Build().Version, func(error) {})
	if err == nil {
		err = t.Close(ctx)
	}
	if err != nil {
		return err
	}
	return a.Say("ok\n")
}

// changed is when a file last changed, through links; zero is not known.
func changed(name string) time.Time {
	info, err := os.Stat(name)
	if err != nil {
		return time.Time{}
	}
	return cli.ChangeTime(info)
}

// again reads the file again, and tells which keys changed at once and which wait
// for a restart. A file that is wrong changes nothing.
func (r *reload) again(a *cli.App) (now, waits []string, err error) {
	r.seen = changed(r.name)
	data, err := readConfig(r.name)
	if err != nil {
		return nil, nil, err
	}
	settings, err := parseConfig(r.name, data, serveCommand(a).Flags())
	if err != nil {
		return nil, nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(keys(r.flags))) {
		before, had := r.file[name]
		after, has := settings[name]
		switch {
		case r.given[name], had == has && before.same(after):
		case !slices.Contains(reloaded(), name):
			waits = append(waits, name)
		default:
			r.f.forget(name)
			delete(r.file, name)
			if has {
				if err := after.set(r.flags.Lookup(name)); err != nil {
					return nil, nil, fmt.Errorf("%s: %w: %w", name, err, paddock.Invalid)
				}
				r.file[name] = after
			}
			now = append(now, name)
		}
	}
	return now, waits, nil
}

// forget gives a flag that takes effect at once its default back.
func (f *operateFlags) forget(name string) {
	switch name {
	case "log-level":
		f.level = levelFlag{}
	case "max-connections":
		f.most = 0
	case "max-connections-per-address":
		f.each = 0
	}
}

// follow reads the configuration again when it changes or a hangup says so, until ctx
// ends. A hangup has the certificate looked at, too, which else follows its files by itself.
func (o *operation) follow(ctx context.Context, a *cli.App) {
	hangup, stop := a.Notify(syscall.SIGHUP)
	defer stop()
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	for {
		told := false
		select {
		case <-ctx.Done():
			return
		case <-hangup:
			told = true
		case <-tick.C:
		}
		if told && o.files != nil {
			o.files.Look()
		}
		if r := o.reload; told || !changed(r.name).Equal(r.seen) {
			o.apply(a)
		}
	}
}

// apply reads the configuration again, and tells what came of it.
func (o *operation) apply(a *cli.App) {
	now, waits, err := o.reload.again(a)
	if err != nil {
		o.log.Error("the configuration was not read again: it is as before", "error", err.Error())
		return
	}
	o.level.Set(o.reload.f.level.Level)
	if o.limit != nil {
		o.limit.Set(o.reload.f.connections())
	}
	o.log.Info("the configuration was read again", "changed", now, "wait for a restart", waits)
}
