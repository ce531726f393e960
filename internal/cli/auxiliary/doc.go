// Package auxiliary has the commands that are rarely used and need much code: audit, image, mcp, sim
// and vm.
package auxiliary
