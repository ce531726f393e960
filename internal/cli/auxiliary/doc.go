// Package auxiliary has the commands that are rarely used and need much code: audit, build, image, mcp, sim
// and vm.
package auxiliary
