//go:build !linux

package main

import "errors"

var errLinux = errors.New("sandboxes with programs are on Linux")

func take([]string) error        { return errLinux }
func lease(string, string) error { return errLinux }
func lock(string, string) error  { return errLinux }
func threads(string) error       { return errLinux }
func watch(string, string) error { return errLinux }
