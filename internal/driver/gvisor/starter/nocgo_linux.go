//go:build !cgo

package starter

// withC reports that this program is not linked with cgo.
const withC = false
