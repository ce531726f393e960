package jail

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/box"
	"github.com/paddock-sandbox/paddock/internal/box/layer"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
	"github.com/paddock-sandbox/paddock/internal/snapshot"
)

// snapshots are those of files. The kernel is the host's, so nothing else of a sandbox can be kept.
type snapshots struct{ site *box.Site }

// Remove implements box.Snapshots.
func (s snapshots) Remove(ctx context.Context, id paddock.SnapshotID) error {
	return layer.Discard(ctx, s.site.Files, id)
}

// Taker implements box.Snapshots.
func (s snapshots) Taker(id paddock.SnapshotID) (paddock.Tier, error) {
	return layer.Taker(s.site.Files, id)
}

// Layer implements box.Snapshots.
func (s snapshots) Layer(ctx context.Context, id paddock.SnapshotID) (*os.File, error) {
	return layer.Archive(ctx, s.site.Files, id)
}

// Paused implements box.Snapshots. A paused sandbox is stopped where it is.
func (snapshots) Paused(string) (paused, whole bool) { return false, false }

// Reopen implements box.Snapshots.
func (snapshots) Reopen(context.Context, string) (*box.Reopened, error) {
	return nil, fmt.Errorf("this tier writes no paused sandbox to disk: %w", paddock.Internal)
}

// Snapshot implements box.Pauser.
func (pauser) Snapshot(ctx context.Context, l *box.Life, o paddock.SnapshotOptions) (paddock.SnapshotID, error) {
	if o.Memory {
		return "", fmt.Errorf("a snapshot of memory: commands run on the host's kernel, which cannot save them; leave memory out, or choose gvisor: %w", paddock.Unsupported)
	}
	return layer.Save(ctx, l, o.Name)
}

// Discard implements box.Pauser.
func (pauser) Discard(l *box.Life, id paddock.SnapshotID) error {
	return layer.Discard(context.Background(), l.Files(), id)
}

// begin completes the spec of a sandbox that begins with a snapshot, and returns how its files get there.
func (s snapshots) begin(spec *paddock.Spec) (*paddock.Spec, func(context.Context, *box.Plan) error, error) {
	if spec.Root.Kind != paddock.RootSnapshot {
		return spec, nil, nil
	}
	b, err := layer.Find(s.site.Files, spec.Root.Snapshot)
	if err != nil {
		return nil, nil, err
	}
	if spec, err = b.Adapt(spec); err != nil {
		return nil, nil, err
	}
	if spec.Root.Kind != paddock.RootHost {
		return nil, nil, fmt.Errorf("snapshot %q is of files over another root than the host's system, which this tier does not begin with; choose gvisor or microvm: %w", string(b.Meta.ID), paddock.Unsupported)
	}
	return spec, func(ctx context.Context, p *box.Plan) error {
		return b.Supply(ctx, p, snapshot.Fit{
			OneOwner: true, Places: places(p.Layout.Config.User.Home), Most: mostContents,
			Attributes: func(key string) bool { return strings.HasPrefix(key, "user.") },
		}, layer.Dialect{})
	}, nil
}

// mostContents bounds the sizes of all files of a snapshot, with their holes, which take time.
const mostContents = 64 << 30

// places are the directories that a sandbox of this tier has for itself, as paths of entries.
func places(home string) []string {
	var list []string
	for _, dir := range append(hostroot.PrivateDirs(), home) {
		if !hostroot.Within(dir, "/dev") {
			list = append(list, strings.Trim(dir, "/"))
		}
	}
	return list
}
