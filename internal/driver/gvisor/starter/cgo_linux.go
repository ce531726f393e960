//go:build cgo

package starter

// withC reports that this program is linked with cgo.
const withC = true
