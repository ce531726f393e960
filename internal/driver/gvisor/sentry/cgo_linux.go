//go:build cgo

package sentry

// withC tells that this program is linked with C.
const withC = true
