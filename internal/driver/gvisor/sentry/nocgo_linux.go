//go:build !cgo

package sentry

// withC reports that this program is not linked with cgo.
const withC = false
