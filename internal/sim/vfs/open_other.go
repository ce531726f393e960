//go:build !unix

package vfs

const noFollow = 0 // what was opened is compared with what was looked at
