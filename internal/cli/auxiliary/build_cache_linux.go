package auxiliary

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/volume"
)

// buildCaches has the directories that RUN --mount=type=cache keeps: volumes, whose names are made of the caches'.
func buildCaches(a *cli.App) func(id, target string, write bool) (paddock.Mount, func() error, error) {
	return func(id, target string, write bool) (paddock.Mount, func() error, error) {
		dir, err := a.VolumesDir()
		if err != nil {
			return paddock.Mount{}, nil, err
		}
		const digits = 12
		sum := sha256.Sum256([]byte(id))
		name := "build-" + hex.EncodeToString(sum[:digits])
		u, err := volume.Open(dir, name, write)
		if errors.Is(err, paddock.NotFound) {
			if err = volume.Create(dir, name, volume.DefaultSize, time.Now()); err == nil || errors.Is(err, paddock.Conflict) {
				u, err = volume.Open(dir, name, write)
			}
		}
		if errors.Is(err, paddock.Exhausted) {
			return paddock.Mount{}, nil, cli.WithHint(err, "remove it: paddock volume rm %s", name)
		}
		if err != nil {
			return paddock.Mount{}, nil, err
		}
		return u.Mount(target), func() error {
			if err := u.Close(); !errors.Is(err, paddock.Exhausted) {
				return err
			}
			return volume.Remove(dir, name) // too large to be kept: a cache begins anew
		}, nil
	}
}
