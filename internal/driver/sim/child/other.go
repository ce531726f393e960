//go:build !linux

package child

// Main is the child's part; there are no children here.
func Main() bool { return false }
