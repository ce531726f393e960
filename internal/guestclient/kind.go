package guestclient

import (
	"context"
	"errors"
	"io"

	"connectrpc.com/connect"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/guest/guestpb"
)

// kinds is a set.
type kinds uint16

func kindsOf(list ...paddock.Kind) (set kinds) {
	for _, k := range list {
		set |= 1 << k
	}
	return set
}

func (s kinds) has(k paddock.Kind) bool { return k <= paddock.Canceled && s&(1<<k) != 0 }

// mayTell returns the kinds of the guest's errors in a call. By kinds callers also learn what the driver says, for
// example that the sandbox is gone, so the guest has only those that tell of what the call names inside.
func mayTell(procedure string) kinds {
	always := kindsOf(paddock.Internal, paddock.Timeout)
	inside := always | kindsOf(paddock.Invalid, paddock.NotFound, paddock.Denied, paddock.Unsupported, paddock.Exhausted, paddock.Conflict)
	switch procedure {
	case guestpb.GuestProcessesProcedure, guestpb.GuestRefusalsProcedure: // they name nothing
		return always | kindsOf(paddock.Unsupported, paddock.Exhausted, paddock.Conflict)
	case guestpb.GuestAttachProcedure, guestpb.GuestInputProcedure, guestpb.GuestSignalProcedure, guestpb.GuestResizeProcedure:
		return inside
	case guestpb.GuestHelloProcedure, guestpb.GuestStartProcedure, guestpb.GuestDialProcedure: // the agent ends, or there is no network
		return inside | kindsOf(paddock.Unavailable)
	case guestpb.GuestReadProcedure, guestpb.GuestWriteProcedure: // the connection beside the call has ended
		return inside | kindsOf(paddock.Exists, paddock.Unavailable)
	case guestpb.GuestStatProcedure, guestpb.GuestListProcedure, guestpb.GuestMkdirProcedure, guestpb.GuestRenameProcedure,
		guestpb.GuestRemoveProcedure, guestpb.GuestChmodProcedure, guestpb.GuestSymlinkProcedure, guestpb.GuestWatchProcedure:
		return inside | kindsOf(paddock.Exists)
	}
	return always
}

// A heardError is an error of a call, with the kinds that it may have.
type heardError struct {
	error
	may kinds
}

func (e *heardError) Unwrap() error { return e.error }

// heard notes in the error of a call what kinds it may have.
func heard(procedure string, err error) error {
	if err == nil || errors.Is(err, io.EOF) {
		return err
	}
	return &heardError{err, mayTell(procedure)}
}

// A hearing notes in the errors of all calls which kinds they may have.
type hearing struct{}

var _ connect.Interceptor = hearing{}

func (hearing) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		res, err := next(ctx, req)
		return res, heard(req.Spec().Procedure, err)
	}
}

func (hearing) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return func(ctx context.Context, spec connect.Spec) connect.StreamingClientConn {
		return heardConn{next(ctx, spec)}
	}
}

func (hearing) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return next
}

type heardConn struct{ connect.StreamingClientConn }

func (c heardConn) Receive(m any) error {
	return heard(c.Spec().Procedure, c.StreamingClientConn.Receive(m))
}
