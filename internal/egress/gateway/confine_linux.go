package gateway

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// memoryMax bounds a gateway's memory, including garbage and buffers. A gateway that needs
// more is compromised or broken, and ends.
const memoryMax = 1 << 30

// filesMax bounds the open files. It is more than a gateway needs.
const filesMax = 1 << 16

// maxConns returns how many connections a gateway can carry. Each has a socket, and a
// second one if it was dialled through a channel. Some files are reserved.
func maxConns() (int, error) {
	files, err := sys.SetResource(sys.ResourceFiles, filesMax)
	if err != nil {
		return 0, err
	}
	return int(min(max(files, 128)-64, 8192)) / 2, nil
}

// confine gives up everything that a gateway does not need: it only dials, and reads its
// configuration. It fails closed. Only a missing Landlock is accepted, and reported.
func confine() ([]paddock.Finding, error) {
	// When the runtime first needs a socket, it probes which ones the host supports, and
	// binds some for that.
	if c, err := net.ListenPacket("udp", "127.0.0.1:0"); err == nil {
		_ = c.Close()
	}
	for r, n := range map[sys.Resource]uint64{sys.ResourceCore: 0, sys.ResourceSize: 0, sys.ResourceData: memoryMax} {
		if _, err := sys.SetResource(r, n); err != nil {
			return nil, err
		}
	}
	if err := sys.DropCapabilities(); err != nil {
		return nil, err
	}
	findings, err := landlock()
	if err != nil {
		return nil, err
	}
	if err := sys.ConfineDialer(); err != nil {
		return nil, err
	}
	return append(findings, paddock.Finding{
		Control: paddock.ControlSeccomp, Strength: paddock.Full,
		How: "the gateway: an allow-list; it can compute and dial, and neither execute, listen nor change a file",
	}), nil
}

func landlock() ([]paddock.Finding, error) {
	f := paddock.Finding{Control: paddock.ControlLandlock, Strength: paddock.Full, How: "the gateway: it can read how names are resolved and whom to trust, and nothing else"}
	switch abi := sys.LandlockABI(); {
	case abi < 1:
		f.Strength, f.How = paddock.Absent, ""
		f.Cause = "this kernel has no Landlock, or it is not in use; the gateway can read the files that its user can"
		f.Remedy = "boot with lsm=landlock,… (see /sys/kernel/security/lsm), on Linux 5.13 or later"
		return []paddock.Finding{f}, nil
	case abi < 6:
		f.Strength, f.Cause = paddock.Weak, fmt.Sprintf("this kernel's Landlock has version %d; from version 6 on neither signals nor abstract sockets reach other processes", abi)
		f.Remedy = "use Linux 6.12 or newer"
	}
	if err := sys.LandlockDialer(readable(os.Environ())); err != nil {
		return nil, err
	}
	return []paddock.Finding{f}, nil
}

// readable returns the resolved paths of the files that a gateway reads.
func readable(environ []string) []string {
	files := []string{"/etc/hosts", "/etc/nsswitch.conf", "/etc/gai.conf", "/etc/services", "/etc/resolv.conf"}
	trust := []string{
		"/etc/ssl/certs", "/etc/ssl/cert.pem", "/etc/ssl/ca-bundle.pem", "/etc/ssl/certs/ca-certificates.crt", "/etc/ssl/certs/ca-bundle.crt",
		"/etc/pki/tls/certs", "/etc/pki/tls/cacert.pem", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/pki/ca-trust/extracted", "/etc/ca-certificates",
		"/usr/share/ca-certificates", "/usr/local/share/ca-certificates", "/usr/share/pki", "/var/lib/ca-certificates",
	}
	for _, e := range environ { // only variables about certificates
		_, value, _ := strings.Cut(e, "=")
		trust = append(trust, strings.Split(value, ":")...)
	}
	var list []string
	for _, path := range append(files, trust...) {
		if !filepath.IsAbs(path) {
			continue
		}
		if real, err := filepath.EvalSymlinks(path); err == nil {
			list = append(list, real)
		}
	}
	// A program that rewrites resolv.conf replaces the file. If it has a directory of its
	// own, later files in it may be read too.
	if real, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil && filepath.Dir(real) != "/etc" && strings.HasPrefix(real, "/run/") && filepath.Dir(real) != "/run" {
		list = append(list, filepath.Dir(real))
	}
	slices.Sort(list)
	return slices.Compact(list)
}
