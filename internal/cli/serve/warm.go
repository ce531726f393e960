package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/dialect/e2b"
	"github.com/paddock-sandbox/paddock/internal/server/api"
	"github.com/paddock-sandbox/paddock/internal/wrap/pool"
)

// shelves reads the values of --warm: WHAT=MIN[:MAX][,ttl=TIME], where WHAT is a
// tier, what clients of E2B get of the template base, or a file with a spec. Sudo tells
// whether a tier has it.
func shelves(a *cli.App, texts []string, sudo func(paddock.Tier) (bool, error)) ([]pool.Shelf, error) {
	var all []pool.Shelf
	for _, text := range texts {
		shelf, err := shelf(a, text, sudo)
		if err != nil {
			return nil, cli.WithHint(fmt.Errorf("--warm %s: %w", text, err), "such as jail=4, e2b:jail=4, or spec.json=2:8,ttl=10m")
		}
		all = append(all, shelf)
	}
	return all, nil
}

func shelf(a *cli.App, text string, sudo func(paddock.Tier) (bool, error)) (s pool.Shelf, err error) {
	if i := strings.LastIndex(text, ",ttl="); i >= 0 {
		var ttl cli.TimeFlag
		if err := ttl.Set(text[i+len(",ttl="):]); err != nil {
			return s, fmt.Errorf("ttl: %w: %w", err, paddock.Invalid)
		}
		s.TTL, text = time.Duration(ttl), text[:i]
	}
	i := strings.LastIndex(text, "=")
	if i <= 0 {
		return s, fmt.Errorf("it is not WHAT=MIN[:MAX][,ttl=TIME]: %w", paddock.Invalid)
	}
	what := text[:i]
	least, most, ranged := strings.Cut(text[i+1:], ":")
	if s.Size, err = readyCount(least); err == nil && ranged {
		s.Most, err = readyCount(most)
	}
	if err != nil {
		return s, err
	}
	name, dialect := strings.CutPrefix(what, "e2b:")
	tier := slices.ContainsFunc(a.Tiers, func(t cli.Tier) bool { return string(t.Name) == name && t.Open != nil })
	switch {
	case what == "auto":
	case what == "e2b":
		s.Spec, err = readyE2B(paddock.Auto, sudo)
	case dialect && tier:
		s.Spec, err = readyE2B(paddock.Tier(name), sudo)
	case dialect:
		return s, fmt.Errorf("there is no tier %q: %w", name, paddock.Invalid)
	case tier:
		s.Spec.Tier = paddock.Tier(what)
	default:
		s.Spec, err = template(a, what)
	}
	return s, err
}

// readyE2B is what clients of E2B get of a tier.
func readyE2B(tier paddock.Tier, sudo func(paddock.Tier) (bool, error)) (paddock.Spec, error) {
	has, err := sudo(tier)
	return e2b.Ready(tier, has), err
}

// hasSudo tells whether sandboxes of a tier have sudo, of paddock.Auto those of the tier
// that they get on this host.
func hasSudo(ctx context.Context, d paddock.Driver, tier paddock.Tier) (bool, error) {
	info, err := d.Info(ctx, tier)
	if errors.Is(err, paddock.Unsupported) || errors.Is(err, paddock.Invalid) {
		return false, nil // there is no such tier, of which whoever keeps its sandboxes is told
	}
	return info.Can(paddock.CanSudo), err
}

// askOnce asks of each tier once: the answer may start a program.
func askOnce(ask func(paddock.Tier) (bool, error)) func(paddock.Tier) (bool, error) {
	known := map[paddock.Tier]bool{}
	return func(tier paddock.Tier) (bool, error) {
		if has, ok := known[tier]; ok {
			return has, nil
		}
		has, err := ask(tier)
		if err == nil {
			known[tier] = has
		}
		return has, err
	}
}

// mostReady is more than anyone keeps.
const mostReady = 10_000

func readyCount(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > mostReady {
		return 0, fmt.Errorf("%q is no number of sandboxes from 1 to %d: %w", text, mostReady, paddock.Invalid)
	}
	return n, nil
}

// template reads a file with a spec, as the API takes it.
func template(a *cli.App, name string) (spec paddock.Spec, err error) {
	dir, err := a.Dir()
	if err != nil {
		return spec, err
	}
	f, err := os.Open(cli.Absolute(name, dir))
	if err != nil {
		return spec, fmt.Errorf("neither a tier nor a file: %w: %w", err, paddock.Invalid)
	}
	defer f.Close()
	if err := api.Decode(f, cli.MaxSiteFile, &spec, nil); err != nil {
		return spec, fmt.Errorf("it is no spec: %w", err)
	}
	return spec, nil
}

// warm puts a pool around a driver, where there is something to keep ready. What
// a server of this database and name left on its shelves is removed, also where
// this one has none.
func warm(ctx context.Context, d paddock.Driver, shelves []pool.Shelf, mark string, log *slog.Logger) (*pool.Pool, error) {
	removed, err := pool.Clean(ctx, d, mark)
	if len(removed) > 0 {
		log.Info("ready sandboxes of before are removed", "sandboxes", len(removed))
	}
	if err != nil { // one that cannot be removed is no reason to serve nobody
		log.Warn("ready sandboxes of before could not all be removed", "error", err)
	}
	if len(shelves) == 0 {
		return nil, nil
	}
	for _, s := range shelves {
		if _, err := d.Info(ctx, s.Spec.Tier); err != nil {
			return nil, cli.WithHint(fmt.Errorf("--warm: %w", err), "`paddock doctor` lists the tiers, and --tiers narrows them")
		}
	}
	p, err := pool.New(d, pool.Options{Shelves: shelves, Mark: mark, Log: log})
	if errors.Is(err, paddock.Invalid) {
		return nil, cli.WithHint(fmt.Errorf("--warm: %w", err), "each shelf has a spec of its own, without an ID, and MAX is not less than MIN")
	}
	return p, err
}
