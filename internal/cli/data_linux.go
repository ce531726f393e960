package cli

import "github.com/paddock-sandbox/paddock/internal/box"

// DataDir returns the caller's directory for data that outlive a sandbox. No sandbox sees it.
func DataDir(lookup func(string) (string, bool)) (string, error) {
	var environ []string
	for _, name := range []string{"HOME", "XDG_DATA_HOME", "XDG_RUNTIME_DIR"} {
		if value, ok := lookup(name); ok {
			environ = append(environ, name+"="+value)
		}
	}
	return box.DefaultData(environ), nil
}
