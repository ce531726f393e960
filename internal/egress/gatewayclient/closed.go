package gatewayclient

import (
	"io"
	"net"
	"time"
)

// closed is a connection that has already ended.
type closed struct{}

func (closed) Read([]byte) (int, error)         { return 0, io.EOF }
func (closed) Write([]byte) (int, error)        { return 0, net.ErrClosed }
func (closed) Close() error                     { return nil }
func (closed) LocalAddr() net.Addr              { return &net.UnixAddr{Net: "unix"} }
func (closed) RemoteAddr() net.Addr             { return &net.UnixAddr{Net: "unix"} }
func (closed) SetDeadline(time.Time) error      { return nil }
func (closed) SetReadDeadline(time.Time) error  { return nil }
func (closed) SetWriteDeadline(time.Time) error { return nil }
