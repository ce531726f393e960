package systemd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/paddock-sandbox/paddock"
)

// patience is how long a manager may take. On a machine that starts it is busy.
const patience = 25 * time.Second

const (
	destination = "org.freedesktop.systemd1"
	manager     = destination + ".Manager"
)

// Socket returns the path of the socket of a user's manager: root's is the system's. runtime is the user's
// directory for sockets; empty is the usual one.
func Socket(uid int, runtime string) string {
	if uid == 0 {
		return "/run/systemd/private"
	}
	if !filepath.IsAbs(runtime) {
		runtime = "/run/user/" + strconv.Itoa(uid)
	}
	return filepath.Join(runtime, "systemd", "private")
}

// Scope moves this process to a transient scope whose control group it may divide, as systemd-run --scope
// -p Delegate=yes does. socket is the one of the manager that is asked. Where no manager runs the error is
// [fs.ErrNotExist].
func Scope(socket string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	conn, err := connect(ctx, socket)
	if err != nil {
		return err
	}
	err = start(ctx, conn)
	_ = conn.Close() // nothing more is asked, and what was asked has its answer
	return err
}

// start starts the scope, and waits until this process is in it.
func start(ctx context.Context, conn *dbus.Conn) error {
	removed := make(chan *dbus.Signal, 64) // a manager that starts tells of many jobs
	conn.Signal(removed)
	type property struct {
		Name  string
		Value dbus.Variant
	}
	pid := os.Getpid()
	properties := []property{
		{"Description", dbus.MakeVariant("Sandboxes of paddock")},
		{"PIDs", dbus.MakeVariant([]uint32{uint32(pid)})},
		{"Delegate", dbus.MakeVariant(true)},
		{"CollectMode", dbus.MakeVariant("inactive-or-failed")},
	}
	name := fmt.Sprintf("paddock-%d-%s.scope", pid, strings.ToLower(rand.Text()[:8]))
	var job dbus.ObjectPath
	systemd := conn.Object(destination, "/org/freedesktop/systemd1")
	err := systemd.CallWithContext(ctx, manager+".StartTransientUnit", 0, name, "fail", properties, []struct {
		Name       string
		Properties []property
	}{}).Store(&job)
	if err != nil {
		return fmt.Errorf("ask systemd for a scope: %w", err)
	}
	for {
		select {
		case s, ok := <-removed:
			if !ok {
				return fmt.Errorf("systemd went away: %w", paddock.Unavailable)
			}
			if s.Name != manager+".JobRemoved" || len(s.Body) != 4 || s.Body[1] != job {
				continue
			}
			if s.Body[3] != "done" {
				return fmt.Errorf("start the scope %s: %v: %w", name, s.Body[3], paddock.Unavailable)
			}
			return nil
		case <-ctx.Done():
			return fmt.Errorf("start the scope %s: %w: %w", name, ctx.Err(), paddock.Timeout)
		}
	}
}

// connect connects to a manager's own socket, which needs no bus.
func connect(ctx context.Context, socket string) (*dbus.Conn, error) {
	conn, err := dbus.Dial("unix:path="+dbus.EscapeBusAddressValue(socket), dbus.WithContext(ctx))
	if err != nil {
		if _, missing := os.Lstat(socket); errors.Is(missing, fs.ErrNotExist) {
			err = missing
		}
		return nil, fmt.Errorf("connect to systemd: %w", err)
	}
	if err := conn.Auth([]dbus.Auth{dbus.AuthExternal(strconv.Itoa(os.Geteuid()))}); err != nil {
		return nil, errors.Join(fmt.Errorf("connect to systemd: %w", err), conn.Close())
	}
	return conn, nil
}
