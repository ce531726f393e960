//go:build !unix

package cli

// watchOver starts nothing: no hooks are installed on such a system.
func watchOver(string, ...string) (done func()) { return func() {} }
