//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/paddock-sandbox/paddock/attack/internet"
	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// relay runs a program in a session with a terminal, for the harness. It is host code.
//
//	attacker terminal [-show] [-user UID] [-lonely] [-network DIR] program…
//
// With -show, the program's output goes to the terminal, and from there to our output.
// Without it, only the program's input is the terminal. With -lonely this is process 1 of
// new namespaces, which it sets up first. With -network the network namespace gets an
// internet with its files in a directory.
func relay(args []string) error {
	show, lonely, uid, network := false, false, -1, ""
	for len(args) > 0 && args[0][0] == '-' {
		switch args[0] {
		case "-show":
			show = true
		case "-lonely":
			lonely = true
		case "-network":
			network, args = args[1], args[1:]
		case "-user":
			n, err := strconv.Atoi(args[1])
			if err != nil {
				return err
			}
			uid, args = n, args[1:]
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return errors.New("want a program")
	}
	if lonely {
		if err := furnish(); err != nil {
			return fmt.Errorf("furnish namespaces: %w", err)
		}
	}
	if network != "" {
		stop, err := connected(network, lonely)
		if err != nil {
			return fmt.Errorf("furnish the network: %w", err)
		}
		defer stop()
	}
	main, side, err := openTerminal()
	if err != nil {
		return err
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = side, os.Stdout, os.Stderr
	if show {
		cmd.Stdout, cmd.Stderr = side, side
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 0}
	if uid >= 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
		if err := side.Chown(uid, uid); err != nil {
			return err
		}
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := side.Close(); err != nil {
		return err
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		to := io.Discard
		if show {
			to = os.Stdout
		}
		_, _ = io.Copy(to, main) // ends with an error when the other side is closed
	}()
	err = cmd.Wait()
	if show {
		<-done
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		os.Exit(max(exit.ExitCode(), 1)) //nolint:gocritic // the internet ends with us
	}
	return err
}

// connected starts an internet, and changes the system's files accordingly.
func connected(dir string, careless bool) (func(), error) {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return nil, err
	}
	args := []string{"internet", dir}
	if careless {
		args = append(args, "-careless")
	}
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop := func() {
		_ = in.Close()
		_ = cmd.Wait()
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		stop()
		return nil, fmt.Errorf("no internet: %w", err)
	}
	roots, err := os.ReadFile(dir + "/" + internet.Roots)
	if err == nil {
		err = errors.Join(
			replace(dir, "/etc/resolv.conf", "nameserver "+protocol.Resolver+"\noptions timeout:2 attempts:1\n"),
			replace(dir, "/etc/hosts", "127.0.0.1 localhost\n::1 localhost ip6-localhost\n"),
			replace(dir, "/etc/ssl/certs/ca-certificates.crt", string(roots)),
			tunnels(dir),
		)
	}
	if err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// tunnels lets every user make TUN interfaces, as most systems do.
func tunnels(dir string) error {
	const name = "/dev/net/tun"
	var st unix.Stat_t
	if err := unix.Stat(name, &st); err != nil {
		return err
	}
	if err := unix.Mknod(dir+"/tun", unix.S_IFCHR|0o600, int(st.Rdev)); err != nil {
		return err
	}
	return errors.Join(os.Chmod(dir+"/tun", 0o666), unix.Mount(dir+"/tun", name, "", unix.MS_BIND, ""))
}

// replace mounts a file over one of the system's, only for this process.
func replace(dir, name, content string) error {
	own := dir + "/" + filepath.Base(name)
	if err := os.WriteFile(own, []byte(content), 0o644); err != nil {
		return err
	}
	if err := unix.Mount(own, name, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("replace %s: %w", name, err)
	}
	return nil
}

func openTerminal() (*os.File, *os.File, error) {
	main, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	n, err := unix.IoctlGetInt(int(main.Fd()), unix.TIOCGPTN)
	if err != nil {
		return nil, nil, err
	}
	unlock := int32(0)
	if err := try0(syscall.Syscall(unix.SYS_IOCTL, main.Fd(), unix.TIOCSPTLCK, uintptr(unsafe.Pointer(&unlock)))); err != nil {
		return nil, nil, err
	}
	side, err := os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	return main, side, err
}

// furnish makes new namespaces harmless: writes to the system's directories go to memory,
// and /proc shows only these processes.
func furnish() error {
	if os.Getpid() != 1 {
		return errors.New("not process 1 of a namespace")
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", "/mnt", "tmpfs", 0, ""); err != nil {
		return err
	}
	for i, d := range []string{"/etc", "/usr", "/var", "/root", "/opt", "/boot", "/srv", "/run"} {
		up, wk := fmt.Sprintf("/mnt/up%d", i), fmt.Sprintf("/mnt/wk%d", i)
		if err := errors.Join(os.Mkdir(up, 0o755), os.Mkdir(wk, 0o755)); err != nil {
			return err
		}
		if err := unix.Mount("overlay", d, "overlay", 0, "lowerdir="+d+",upperdir="+up+",workdir="+wk); err != nil {
			return fmt.Errorf("%s: %w", d, err)
		}
		if d == "/var" {
			if err := os.MkdirAll("/var/tmp", 0o777|os.ModeSticky); err != nil {
				return err
			}
		}
	}
	if err := unix.Mount("tmpfs", "/dev/shm", "tmpfs", 0, ""); err != nil {
		return err
	}
	// Private terminals, because the output of a program that types into all of them would
	// not be reliable with other tests beside it.
	return errors.Join(
		unix.Mount("devpts", "/dev/pts", "devpts", 0, "newinstance,ptmxmode=0666,mode=0620"),
		unix.Mount("proc", "/proc", "proc", 0, ""),
	)
}
