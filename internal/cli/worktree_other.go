//go:build !linux

package cli

// commonDir finds nothing: no tier of this system mounts a repository.
func commonDir(_, _ string) (string, bool) { return "", false }
