package child

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim/parent/protocol"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
)

// dialerOf is the child's side of give.
func dialerOf(control net.Conn) (*gatewayclient.Dialer, error) {
	conn, ok := control.(*net.UnixConn)
	if !ok {
		return nil, fmt.Errorf("%T is no socket: %w", control, paddock.Internal)
	}
	oob := make([]byte, syscall.CmsgSpace(4))
	_, n, _, _, err := conn.ReadMsgUnix(make([]byte, 1), oob)
	if err != nil {
		return nil, err
	}
	messages, err := syscall.ParseSocketControlMessage(oob[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(err, protocol.ErrNonsense)
	}
	fds, err := syscall.ParseUnixRights(&messages[0])
	if err != nil || len(fds) != 1 {
		return nil, errors.Join(err, protocol.ErrNonsense)
	}
	return gatewayclient.NewDialer(os.NewFile(uintptr(fds[0]), "dial"))
}

// pool reads certificates when they are first needed.
func pool(pem []byte) func() *x509.CertPool {
	return sync.OnceValue(func() *x509.CertPool {
		roots := x509.NewCertPool()
		roots.AppendCertsFromPEM(pem)
		return roots
	})
}
