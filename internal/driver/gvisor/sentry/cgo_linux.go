//go:build cgo

package sentry

// withC reports that this program is linked with cgo.
const withC = true
