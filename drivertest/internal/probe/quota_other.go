//go:build !linux

package main

import "errors"

var errLinux = errors.New("sandboxes with programs are on Linux")

func take([]string) error        { return errLinux }
func lease(string, string) error { return errLinux }
func lock(string, string) error  { return errLinux }
func threads(string) error       { return errLinux }
func stamps(string) error        { return errLinux }
func spread(string) error        { return errLinux }
func watch(string, string) error { return errLinux }
func events([]string) error      { return errLinux }

func addresses(string, string) error  { return errLinux }
func serve(string, string) error      { return errLinux }
func ask(string) error                { return errLinux }
func hasty(string, string, int) error { return errLinux }
func pair(string) error               { return errLinux }
func undumpable(string, string) error { return errLinux }
func race(string, int) error          { return errLinux }
func size(string) error               { return errLinux }
