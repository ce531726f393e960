//go:build !linux

package child

// Main returns false, because this system has no child processes of simulated computers.
func Main() bool { return false }
