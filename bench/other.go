//go:build !linux

package main

import (
	"fmt"
	"os"
)

func main() {
	fmt.Fprintln(os.Stderr, "bench: sandboxes of this version are made on Linux only")
	os.Exit(1)
}
