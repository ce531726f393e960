package supervisor

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

// sizesFile is the file by which the sentry learns what commands see as the machine's memory and
// processors. gVisor's own code would ask a control group, of which the box's processes see none.
var sizesFile = filepath.Join(boxinit.State, "sizes")

// leaveSizes writes the file before the sentry is started.
func leaveSizes(s boxinit.Sizes) error {
	data, err := json.Marshal(s)
	if err == nil {
		err = os.WriteFile(sizesFile, data, 0o600)
	}
	return err
}

// sized puts the sizes into the sentry's arguments, which have those of the host.
func sized(args []string) ([]string, error) {
	data, err := os.ReadFile(sizesFile)
	if err != nil {
		return nil, err
	}
	var s boxinit.Sizes
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, err
	}
	return sizedTo(args, s, runtime.NumCPU())
}

// sizedTo is sized on a host with so many processors.
func sizedTo(args []string, s boxinit.Sizes, processors int) ([]string, error) {
	const flag = "--total-memory"
	i := slices.Index(args, flag)
	if i < 0 || i+1 >= len(args) {
		return nil, fmt.Errorf("gVisor has no argument %s: %w", flag, paddock.Internal)
	}
	host, err := strconv.ParseInt(args[i+1], 10, 64)
	if err != nil {
		return nil, fmt.Errorf("argument %s: %w", flag, err)
	}
	args = slices.Clone(args)
	if s.Memory > 0 && s.Memory < host {
		args[i+1] = strconv.FormatInt(s.Memory, 10)
	}
	if s.Processors > 0 && s.Processors < processors {
		args = slices.Insert(args, i, "--cpu-num", strconv.Itoa(s.Processors))
	}
	return args, nil
}
