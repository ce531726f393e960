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
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// listenSudo occupies the address for sudo requests before there is a command that could
// take it.
func listenSudo() (*net.UnixListener, error) {
	return net.ListenUnix("unix", &net.UnixAddr{Name: sudo.Address, Net: "unix"})
}

// showSudo mounts this program, which the tree has for the agent, where commands look for
// sudo. Because it is a mount, nobody can change or remove it. If the tree has no sudo, an
// empty file below the mount is made in the private layer. Nothing of the sandbox runs yet,
// but an earlier sandbox with the same tree may have left any links. So no link is
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
	return sys.BindFile(Argv0, sudo.Path)
}
