//go:build !linux

package main

import "errors"

func signalAll(string) error { return errors.New("only Linux has sandboxes to try this in") }
