//go:build cgo

package supervisor

// withC reports that this program is linked with cgo.
const withC = true
