package policy

import (
	"fmt"

	"github.com/paddock-sandbox/paddock"
)

var errTemporary = fmt.Errorf("policy: not built yet: %w", paddock.Unsupported)

// ReadSRT reads the settings file of npm @anthropic-ai/sandbox-runtime, as of
// version 0.0.83.
func ReadSRT(name string, data []byte, o Host) (*File, error) { return nil, errTemporary }
