// Package auxiliary has the commands that are rarely used and need much code: audit, sim
// and vm.
package auxiliary
