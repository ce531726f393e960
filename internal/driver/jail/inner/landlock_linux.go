package inner

import (
	"errors"
	"fmt"
	"os"

	"github.com/landlock-lsm/go-landlock/landlock"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// restrict is the second wall around files: the whole process, and everything
// it starts, may read and execute what is mounted, and change only what is
// listed. It also takes away the right to mount, and shuts off abstract
// sockets and signals to anything outside, where the kernel knows how.
func restrict(writable []string) error {
	var config landlock.Config
	switch abi := kernel.LandlockABI(); {
	case abi >= 6:
		config = landlock.V6
	case abi == 5:
		config = landlock.V5
	case abi == 4, abi == 3:
		config = landlock.V3
	default:
		return fmt.Errorf("landlock version %d is too old, version 3 (Linux 6.2) is needed: %w", abi, paddock.Unsupported)
	}
	rules := []landlock.Rule{landlock.RODirs("/")}
	for _, path := range writable {
		st, err := os.Lstat(path)
		if err != nil {
			if errors.Is(err, os.ErrNotExist) {
				continue
			}
			return err
		}
		if st.IsDir() {
			rules = append(rules, landlock.RWDirs(path).WithRefer().WithIoctlDev())
			continue
		}
		rules = append(rules, landlock.RWFiles(path).WithIoctlDev())
	}
	if err := config.RestrictPaths(rules...); err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	return nil
}
