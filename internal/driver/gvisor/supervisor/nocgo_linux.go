//go:build !cgo

package supervisor

// withC reports that this program is not linked with cgo.
const withC = false
