//go:build !unix

package shelf

import (
	"fmt"
	"os"

	"github.com/paddock-sandbox/paddock"
)

func tryLock(*os.File, bool) error {
	return fmt.Errorf("images are not kept on this system, which has no flock: %w", paddock.Unsupported)
}
