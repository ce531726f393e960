package admission_test

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/wrap/admission"
)

const mib = 1 << 20

func TestRoom(t *testing.T) {
	inBubble(t, map[string]func(t *testing.T){
		"the sandbox that is one too many is refused, until one is removed": func(t *testing.T) {
			r := set(t, &fake{}, admission.Options{Sandboxes: 2})
			r.create(t, 0)
			sb := r.create(t, 0)
			r.full(t, 0, "full", "2 of 2 sandboxes", "remove")
			if err := sb.Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.create(t, 0)
		},
		"the limits of memory, asked or by default, are not promised beyond what there is": func(t *testing.T) {
			r := set(t, &fake{}, admission.Options{})
			r.create(t, 900*mib)
			r.create(t, 0) // 100 MiB
			r.full(t, 0, "1000.0 MiB", "1.0 GiB", "100.0 MiB more", "memory limit")
			r.create(t, 24*mib)
		},
		"what a sandbox got beyond what was asked for counts, and is removed where there is no room": func(t *testing.T) {
			r := set(t, &fake{least: 600 * mib}, admission.Options{})
			sb := r.create(t, 1)
			if l := r.Load(); l.Memory != 600*mib {
				t.Errorf("%+v", l)
			}
			_, err := r.Create(t.Context(), paddock.Spec{Limits: paddock.Limits{Memory: 1}})
			wantKind(t, "create", err, paddock.Exhausted, "full")
			if l := r.Load(); l.Memory != 600*mib || l.Sandboxes != 1 || len(r.f.boxes) != 1 {
				t.Errorf("%+v, there are %d", l, len(r.f.boxes))
			}
			if err := sb.Remove(t.Context()); err != nil {
				t.Fatal(err)
			}
			r.create(t, 1)
		},
		"what cannot be summed is refused": func(t *testing.T) {
			r := set(t, &fake{}, admission.Options{})
			r.create(t, 1)
			r.full(t, 1<<63-1, "full")
		},
		"more is promised where that is asked for": func(t *testing.T) {
			r := set(t, &fake{}, admission.Options{Overcommit: 2})
			r.create(t, 1024*mib)
			r.create(t, 1024*mib)
			r.full(t, 1, "2.0 GiB")
		},
		"a Create that fails gives its room back": func(t *testing.T) {
			r := set(t, &fake{fail: errors.New("out of luck")}, admission.Options{Sandboxes: 1})
			if _, err := r.Create(t.Context(), paddock.Spec{}); err == nil {
				t.Fatal("it was made")
			}
			r.f.fail = nil
			r.create(t, 0)
		},
		"what is being made counts": func(t *testing.T) {
			r := set(t, &fake{slow: time.Minute}, admission.Options{Sandboxes: 1})
			var wg sync.WaitGroup
			wg.Go(func() { r.create(t, 0) })
			synctest.Wait()
			r.full(t, 0, "1 of 1 sandboxes")
			wg.Wait()
		},
		"what was there before counts, and what went by itself does not": func(t *testing.T) {
			f := &fake{}
			if _, err := f.Create(t.Context(), paddock.Spec{}); err != nil {
				t.Fatal(err)
			}
			r := set(t, f, admission.Options{Sandboxes: 1})
			r.full(t, 0)
			f.set(func() { clear(f.boxes) })
			<-time.After(2 * time.Second)
			r.create(t, 0)
		},
		"who is refused over and over does not keep the driver busy": func(t *testing.T) {
			r := set(t, &fake{}, admission.Options{Sandboxes: 1})
			r.create(t, 0)
			for range 100 {
				r.full(t, 0)
			}
			if r.f.lists > 2 {
				t.Errorf("the driver was asked %d times", r.f.lists)
			}
			if l := r.Load(); l.Refused != 100 || l.Sandboxes != 1 || l.Memory != 100*mib {
				t.Errorf("%+v", l)
			}
		},
		"sandboxes that are slow to list are not listed several times at once": func(t *testing.T) {
			r := set(t, &fake{}, admission.Options{Sandboxes: 1})
			r.create(t, 0)
			r.f.late = time.Minute
			var wg sync.WaitGroup
			for range 30 {
				<-time.After(2 * time.Second)
				wg.Go(func() { r.full(t, 0) })
			}
			wg.Wait()
			if r.f.lists != 2 { // one at the start
				t.Errorf("the driver was asked %d times", r.f.lists)
			}
		},
		"who asks for more than the whole machine has makes nobody look": func(t *testing.T) {
			r := set(t, &fake{}, admission.Options{})
			<-time.After(time.Minute)
			r.full(t, 1025*mib, "1.0 GiB")
			if r.f.lists != 1 {
				t.Errorf("the driver was asked %d times", r.f.lists)
			}
		},
		"a larger limit needs room, and a smaller one gives it back": func(t *testing.T) {
			r := set(t, &fake{}, admission.Options{})
			sb := r.create(t, 500*mib)
			up := func(n int64) error {
				return sb.Update(t.Context(), paddock.Update{Limits: &paddock.Limits{Memory: n}})
			}
			wantKind(t, "update", up(2000*mib), paddock.Exhausted, "1.5 GiB more", "full")
			if err := up(1024 * mib); err != nil {
				t.Fatal(err)
			}
			r.full(t, 1)
			if err := up(100 * mib); err != nil {
				t.Fatal(err)
			}
			r.create(t, 924*mib)
		},
		"files that are memory beside the limit count": func(t *testing.T) {
			r := set(t, &fake{files: 150 * mib}, admission.Options{})
			for range 5 {
				r.create(t, 1*mib) // and 150 of files, and 50
			}
			if l := r.Load(); l.Memory != 5*201*mib {
				t.Errorf("%+v", l)
			}
			r.full(t, 1*mib, "1005.0 MiB", "201.0 MiB more", "disk limit")
			_, err := r.Create(t.Context(), paddock.Spec{Limits: paddock.Limits{Memory: 1 * mib, Disk: 1000 * mib}})
			wantKind(t, "create", err, paddock.Exhausted, "1.0 GiB more")
			again := set(t, r.f, admission.Options{}) // they are found
			if l := again.Load(); l.Memory != 5*201*mib {
				t.Errorf("%+v", l)
			}
		},
		"a larger limit of files that are memory needs room, and a smaller one gives it back": func(t *testing.T) {
			r := set(t, &fake{files: 10 * mib}, admission.Options{})
			sb := r.create(t, 1*mib)
			up := func(memory, disk int64) error {
				return sb.Update(t.Context(), paddock.Update{Limits: &paddock.Limits{Memory: memory, Disk: disk}})
			}
			wantKind(t, "update", up(1*mib, 1000*mib), paddock.Exhausted, "full")
			if err := up(1*mib, 500*mib); err != nil {
				t.Fatal(err)
			}
			if l := r.Load(); l.Memory != 551*mib {
				t.Errorf("%+v", l)
			}
			r.full(t, 450*mib)
			if err := up(1*mib, 20*mib); err != nil {
				t.Fatal(err)
			}
			r.create(t, 800*mib)                                                    // 860, beside 71
			for _, keeps := range [][2]int64{{0, 20 * mib}, {1 * mib, 0}, {0, 0}} { // the defaults have no room
				if err := up(keeps[0], keeps[1]); err != nil {
					t.Errorf("with %d bytes of memory and %d of disk: %v", keeps[0], keeps[1], err)
				}
			}
			r.f.fail = errors.New("out of luck")
			if err := up(1*mib, 30*mib); err == nil {
				t.Error("it was changed")
			}
			if l := r.Load(); l.Memory != (71+860)*mib {
				t.Errorf("%+v", l)
			}
		},
		"an update that failed claims what it may have changed": func(t *testing.T) {
			for name, row := range map[string]struct {
				fail, half error
				dead       bool
				want       int64 // in MiB
			}{
				"it changed nothing":                 {fail: paddock.Conflict, want: 100},
				"its caller left, and it was undone": {fail: paddock.Canceled, want: 100},
				"its caller left, and it was made":   {half: paddock.Canceled, want: 300},
				"a part of it was made":              {half: errors.New("out of luck"), want: 300},
				"it may still be made":               {fail: paddock.Unavailable, want: 300},
				"the sandbox has died":               {fail: paddock.Unavailable, dead: true, want: 100},
			} {
				f := &fake{}
				r := set(t, f, admission.Options{})
				sb := r.create(t, 100*mib)
				f.set(func() { f.fail, f.half, f.dead = row.fail, row.half, row.dead })
				ctx, cancel := context.WithCancel(t.Context())
				f.set(func() { f.leaves = cancel })
				if err := sb.Update(ctx, paddock.Update{Limits: &paddock.Limits{Memory: 300 * mib}}); !errors.Is(err, cmp.Or(row.fail, row.half)) {
					t.Errorf("%s: %v", name, err)
				}
				cancel()
				if l := r.Load(); l.Memory != row.want*mib {
					t.Errorf("%s: %d MiB are claimed", name, l.Memory/mib)
				}
				f.set(func() { f.fail, f.half, f.dead = nil, nil, false })
				if err := sb.Update(t.Context(), paddock.Update{Limits: &paddock.Limits{Memory: 200 * mib}}); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if l := r.Load(); l.Memory != 200*mib {
					t.Errorf("%s: afterwards %d MiB are claimed", name, l.Memory/mib)
				}
			}
		},
		"of two updates at once, the later one is what is held": func(t *testing.T) {
			r := set(t, &fake{tells: time.Minute}, admission.Options{})
			sb := r.create(t, 100*mib)
			var wg sync.WaitGroup
			for _, n := range []int64{200 * mib, 500 * mib} {
				wg.Go(func() {
					if err := sb.Update(t.Context(), paddock.Update{Limits: &paddock.Limits{Memory: n}}); err != nil {
						t.Error(err)
					}
				})
				<-time.After(time.Second)
				r.f.set(func() { r.f.tells = 0 })
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			wantKind(t, "one whose caller goes", sb.Update(ctx, paddock.Update{Limits: &paddock.Limits{Memory: 1}}), paddock.Canceled)
			wg.Wait()
			if l := r.Load(); l.Memory != 500*mib {
				t.Errorf("%+v", l)
			}
		},
		"what else is there counts": func(t *testing.T) {
			r := set(t, &fake{}, admission.Options{Besides: func() []paddock.Spec { return []paddock.Spec{{Limits: paddock.Limits{Memory: 900 * mib}}, {}} }})
			r.full(t, 100*mib, "1000.0 MiB")
			r.create(t, 24*mib)
		},
		"little memory or disk is refused, whatever was promised": func(t *testing.T) {
			r := set(t, &fake{}, admission.Options{Dir: "/state"})
			r.m.set(func() { r.m.available = 10 * mib })
			r.full(t, 1, "10.0 MiB of memory are left", "51.2 MiB are reserved")
			r.m.set(func() { r.m.available = 1 << 30; r.m.free = 5 * mib })
			r.full(t, 1, "5.0 MiB", "/state", "1.0 GiB are reserved")
			r.m.set(func() { r.m.free = 1 << 40 })
			r.create(t, 1)
		},
		"a look that fails is no room": func(t *testing.T) {
			r := set(t, &fake{}, admission.Options{})
			r.m.set(func() { r.m.err = errors.New("no proc") })
			if _, err := r.Create(t.Context(), paddock.Spec{}); err == nil || !strings.Contains(err.Error(), "no proc") {
				t.Errorf("create: %v", err)
			}
		},
		"a machine that tells nothing needs to be told": func(t *testing.T) {
			m := &machine{err: paddock.Unsupported}
			for _, o := range []admission.Options{{Machine: m}, {Machine: m, Memory: 1 << 30, Reserve: 1}, {Machine: m, Memory: 1 << 30, Dir: "/state"}} {
				if _, err := admission.New(t.Context(), &fake{}, o); !errors.Is(err, paddock.Unsupported) {
					t.Errorf("%+v: %v", o, err)
				}
			}
			d, err := admission.New(t.Context(), &fake{}, admission.Options{Machine: m, Memory: 1 << 30})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := d.Create(t.Context(), paddock.Spec{}); err != nil {
				t.Error(err)
			}
		},
		"a bound below nothing is refused": func(t *testing.T) {
			for _, o := range []admission.Options{{Sandboxes: -1}, {Memory: -1}, {Overcommit: -1}, {Reserve: -1}, {DiskReserve: -1}, {Creating: -1}, {Waiting: -1}} {
				if _, err := admission.New(t.Context(), &fake{}, o); !errors.Is(err, paddock.Invalid) {
					t.Errorf("%+v: %v", o, err)
				}
			}
		},
	})
}

func who(_ context.Context, spec paddock.Spec) string { return spec.Labels["who"] }

func (r rig) by(ctx context.Context, name string) error {
	_, err := r.Create(ctx, paddock.Spec{Limits: paddock.Limits{Memory: 1}, Labels: map[string]string{"who": name}})
	return err
}

func TestLine(t *testing.T) {
	inBubble(t, map[string]func(t *testing.T){
		"few are made at once, and who came first goes first": func(t *testing.T) {
			r := set(t, &fake{slow: time.Second}, admission.Options{Creating: 2})
			var wg sync.WaitGroup
			for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
				wg.Go(func() {
					if err := r.by(t.Context(), name); err != nil {
						t.Error(err)
					}
				})
				synctest.Wait()
			}
			start := time.Now()
			wg.Wait()
			for i := 0; i+1 < len(r.f.made); i += 2 { // two begin at the same moment
				slices.Sort(r.f.made[i : i+2])
			}
			if r.f.most != 2 || strings.Join(r.f.made, "") != "abcdef" || time.Since(start) != 3*time.Second {
				t.Errorf("%d at once, in the order %q, in %v", r.f.most, r.f.made, time.Since(start))
			}
		},
		"the line has an end": func(t *testing.T) {
			r := set(t, &fake{slow: time.Second}, admission.Options{Creating: 1, Waiting: 2})
			var wg sync.WaitGroup
			for range 3 {
				wg.Go(func() {
					if err := r.by(t.Context(), "a"); err != nil {
						t.Error(err)
					}
				})
			}
			synctest.Wait()
			wantKind(t, "create", r.by(t.Context(), "a"), paddock.Exhausted, "2 more are waiting")
			wg.Wait()
			if l := r.Load(); l.Waiting != 0 || l.Sandboxes != 3 {
				t.Errorf("%+v", l)
			}
		},
		"who waits too long, or goes, leaves no hole": func(t *testing.T) {
			r := set(t, &fake{slow: time.Minute}, admission.Options{Creating: 1})
			var wg sync.WaitGroup
			wg.Go(func() { _ = r.by(t.Context(), "a") })
			synctest.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			wantKind(t, "late", r.by(ctx, "b"), paddock.Timeout, "in line")
			ctx, cancel = context.WithCancel(t.Context())
			wg.Go(func() { wantKind(t, "gone", r.by(ctx, "c"), paddock.Canceled) })
			synctest.Wait()
			cancel()
			wg.Wait()
			if err := r.by(t.Context(), "d"); err != nil {
				t.Error(err)
			}
			if !slices.Equal(r.f.made, []string{"a", "d"}) || r.Load().Sandboxes != 2 {
				t.Errorf("made for %q; %+v", r.f.made, r.Load())
			}
		},
		"one that floods is not served before others, and leaves them room": func(t *testing.T) {
			r := set(t, &fake{slow: time.Second}, admission.Options{Creating: 1, Waiting: 8, Key: who})
			var wg sync.WaitGroup
			refused := 0
			var mu sync.Mutex
			for range 20 {
				wg.Go(func() {
					if err := r.by(t.Context(), "flood"); err != nil {
						wantKind(t, "flood", err, paddock.Exhausted, "4 of your sandboxes")
						mu.Lock()
						defer mu.Unlock()
						refused++
					}
				})
			}
			synctest.Wait()
			for _, name := range []string{"a", "b"} {
				wg.Go(func() {
					if err := r.by(t.Context(), name); err != nil {
						t.Error(err)
					}
				})
				synctest.Wait()
			}
			wg.Wait()
			if got := strings.Join(r.f.made, " "); refused != 15 || got != "flood flood a b flood flood flood" {
				t.Errorf("refused %d; made for %q", refused, got)
			}
		},
		"many come and go, and all is given back": func(t *testing.T) {
			r := set(t, &fake{slow: time.Millisecond}, admission.Options{Creating: 3, Waiting: 1000, Overcommit: 1e6, Key: who})
			var wg sync.WaitGroup
			for i := range 300 {
				wg.Go(func() {
					ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%50)*time.Millisecond)
					defer cancel()
					sb, err := r.Create(ctx, paddock.Spec{Labels: map[string]string{"who": string(rune('a' + i%3))}})
					if err == nil {
						err = sb.Remove(t.Context())
					}
					if err != nil && !errors.Is(err, paddock.Timeout) && !errors.Is(err, paddock.Canceled) {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if l := r.Load(); l.Sandboxes != 0 || l.Memory != 0 || l.Waiting != 0 || r.f.most > 3 {
				t.Errorf("%+v; %d at once", l, r.f.most)
			}
			r.create(t, 0)
		},
	})
}
