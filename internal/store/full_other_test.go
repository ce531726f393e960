//go:build !linux

package store_test

import "errors"

func fill(string) error { return errors.New("small disks are made on Linux only") }
