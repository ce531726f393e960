package guestinit

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/sudo"
	"github.com/paddock-sandbox/paddock/internal/kernel"
)

// listenSudo takes the address at which commands ask for sudo, before there is a
// command that could.
func listenSudo() (*net.UnixListener, error) {
	return net.ListenUnix("unix", &net.UnixAddr{Name: sudo.Address, Net: "unix"})
}

// showSudo puts this program, which the tree has for the agent, where commands look
// for sudo. It is a mount, so nobody changes or removes it; below it an empty file
// is in the private layer, where the tree had none. Nothing of the sandbox's runs
// yet, but what ran before in the same tree may have left any links: none is
// followed.
func showSudo() error {
	for dir := path.Dir(sudo.Path); dir != "/"; dir = path.Dir(dir) {
		st, err := os.Lstat(dir)
		if err != nil {
			return fmt.Errorf("%s: %w: %w", dir, err, paddock.Unsupported)
		}
		if !st.IsDir() {
			return fmt.Errorf("%s is no directory: %w", dir, paddock.Unsupported)
		}
	}
	st, err := os.Lstat(sudo.Path)
	if err == nil && !st.Mode().IsRegular() {
		if err := os.Remove(sudo.Path); err != nil {
			return err
		}
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err != nil || !st.Mode().IsRegular() {
		f, err := os.OpenFile(sudo.Path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		f.Close()
	}
	return kernel.BindFile(Argv0, sudo.Path)
}
