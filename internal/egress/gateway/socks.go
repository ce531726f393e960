package gateway

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"syscall"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/egress/netstack"
)

// socksTime bounds the time for a guest's request.
const socksTime = 10 * time.Second

// Replies of SOCKS5 (RFC 1928).
const (
	socksGranted     = 0
	socksFailed      = 1
	socksDenied      = 2
	socksNetwork     = 3
	socksHost        = 4
	socksRefused     = 5
	socksCommand     = 7
	socksAddressType = 8
)

// A socksError is a refused request with its reply.
type socksError struct {
	reply byte
	host  string // as written, if it was read
	port  uint16
	err   error
}

func (e *socksError) Error() string { return e.err.Error() }
func (e *socksError) Unwrap() error { return e.err }

// serveSOCKS serves one connection to the SOCKS5 proxy.
func (g *Gateway) serveSOCKS(ctx context.Context, c netstack.Conn) {
	_ = c.SetDeadline(time.Now().Add(socksTime))
	f, err := readSOCKS(c)
	_ = c.SetDeadline(time.Time{})
	if err != nil {
		g.refuseSOCKS(c, err)
		return
	}
	// If the guest goes away meanwhile, the answer fails.
	up, err := g.connect(ctx, f)
	if err != nil {
		_ = answerSOCKS(c, replyOf(err)) // the decision was reported
		return
	}
	if err := answerSOCKS(c, socksGranted); err != nil {
		up.drop()
		return
	}
	_ = up.carry(c) // the outcome was reported
}

func (g *Gateway) refuseSOCKS(c net.Conn, err error) {
	var e *socksError
	if !errors.As(err, &e) {
		return // it sent nothing, or not all of it
	}
	g.teller.tell(gatewayclient.Event{Kind: gatewayclient.KindProxy, Host: quoted(e.host), Port: e.port, Rule: -1, Verdict: gatewayclient.VerdictDeny, Reason: "SOCKS: " + e.Error()})
	if e.reply != 0 {
		_ = answerSOCKS(c, e.reply)
	}
}

// readSOCKS reads and answers a greeting, and reads a request, and not one byte more.
func readSOCKS(c io.ReadWriter) (decide.Flow, error) {
	head := make([]byte, 2)
	if _, err := io.ReadFull(c, head); err != nil {
		return decide.Flow{}, err
	}
	if head[0] != 5 {
		return decide.Flow{}, &socksError{err: fmt.Errorf("version %d, and 5 is served: %w", head[0], paddock.Invalid)}
	}
	methods := make([]byte, head[1])
	if _, err := io.ReadFull(c, methods); err != nil {
		return decide.Flow{}, err
	}
	if !slices.Contains(methods, 0) {
		_, err := c.Write([]byte{5, 0xff})
		return decide.Flow{}, errors.Join(err, &socksError{err: fmt.Errorf("it offers no method without authentication: %w", paddock.Invalid)})
	}
	if _, err := c.Write([]byte{5, 0}); err != nil {
		return decide.Flow{}, err
	}
	return readSOCKSRequest(c)
}

func readSOCKSRequest(r io.Reader) (decide.Flow, error) {
	head := make([]byte, 4)
	if _, err := io.ReadFull(r, head); err != nil {
		return decide.Flow{}, err
	}
	if head[0] != 5 || head[2] != 0 {
		return decide.Flow{}, &socksError{reply: socksFailed, err: fmt.Errorf("not a request of version 5: %w", paddock.Invalid)}
	}
	size := 0
	switch head[3] {
	case 1:
		size = 4
	case 4:
		size = 16
	case 3:
		one := make([]byte, 1)
		if _, err := io.ReadFull(r, one); err != nil {
			return decide.Flow{}, err
		}
		size = int(one[0])
	default:
		return decide.Flow{}, &socksError{reply: socksAddressType, err: fmt.Errorf("address type %d: %w", head[3], paddock.Invalid)}
	}
	rest := make([]byte, size+2)
	if _, err := io.ReadFull(r, rest); err != nil {
		return decide.Flow{}, err
	}
	port := binary.BigEndian.Uint16(rest[size:])
	host, err := socksHostOf(head[3], rest[:size])
	if err == nil && port == 0 {
		err = fmt.Errorf("port 0: %w", paddock.Invalid)
	}
	if err != nil {
		return decide.Flow{}, &socksError{reply: socksFailed, host: string(rest[:size]), port: port, err: err}
	}
	if head[1] != 1 {
		return decide.Flow{}, &socksError{
			reply: socksCommand, host: host.String(), port: port,
			err: fmt.Errorf("command %d, and only CONNECT is served: %w", head[1], paddock.Unsupported),
		}
	}
	return decide.Flow{Host: host, Port: port}, nil
}

func socksHostOf(kind byte, data []byte) (decide.Host, error) {
	if kind == 3 {
		return decide.ParseHost(string(data))
	}
	addr, ok := netip.AddrFromSlice(data)
	if !ok {
		return decide.Host{}, fmt.Errorf("no address: %w", paddock.Invalid)
	}
	return decide.HostOf(addr), nil
}

// replyOf returns the SOCKS reply for an error.
func replyOf(err error) byte {
	switch {
	case paddock.KindOf(err) == paddock.Denied:
		return socksDenied
	case errors.Is(err, syscall.ECONNREFUSED):
		return socksRefused
	case errors.Is(err, syscall.ENETUNREACH):
		return socksNetwork
	case errors.Is(err, syscall.EHOSTUNREACH), paddock.KindOf(err) == paddock.NotFound, paddock.KindOf(err) == paddock.Timeout:
		return socksHost
	}
	return socksFailed
}

func answerSOCKS(w io.Writer, reply byte) error {
	_, err := w.Write([]byte{5, reply, 0, 1, 0, 0, 0, 0, 0, 0})
	return err
}
