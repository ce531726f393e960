package sentry

import (
	"errors"
	"fmt"
	"os"

	"gvisor.dev/gvisor/pkg/fd"
	"gvisor.dev/gvisor/pkg/sentry/seccheck"
	"gvisor.dev/gvisor/pkg/urpc"
	"gvisor.dev/gvisor/runsc/boot"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/boxinit"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/procevent/emitter"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/sentry/overlaysize"
)

// guardName is what a session's configuration calls the guard.
const guardName = "paddock-guard"

// A guard is a sink of trace points that takes none. A session is made when the
// sentry has set itself up, and before it runs anything of the guest's: just
// when it has to enlist with the broker. It cannot sooner, because a filter that
// reports calls lets none of its processes have another one, and those in which
// gVisor runs the guest's code, which the sentry has made by then, have one.
type guard struct{ seccheck.SinkDefaults }

func (guard) Name() string { return guardName }

func registerGuard(ready func()) {
	seccheck.RegisterSink(seccheck.SinkDesc{Name: guardName, New: func(_ map[string]any, end *fd.FD) (seccheck.Sink, error) {
		if end == nil {
			return nil, errors.New("a guard without a socket")
		}
		f, err := end.File()
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if err := boxinit.EnlistOn(f); err != nil {
			return nil, fmt.Errorf("enlist with the broker: %w", err)
		}
		ready()
		return guard{}, end.Close()
	}})
}

// begin makes the session of trace points: the sentry enlists with the broker,
// and tells of the given kinds on events.
func begin(control *urpc.Client, events *os.File, kinds []paddock.AuditKind) error {
	points, err := emitter.Points(kinds)
	if err != nil {
		return err
	}
	end, err := boxinit.DialGuard()
	if err != nil {
		return err
	}
	defer end.Close()
	args := boot.CreateTraceSessionArgs{
		Config: seccheck.SessionConfig{
			Name: seccheck.DefaultSessionName, Points: append(points, overlaysize.Point()),
			Sinks: []seccheck.SinkConfig{{Name: guardName}, {Name: emitter.Sink}, {Name: overlaysize.Sink}},
		},
		FilePayload: urpc.FilePayload{Files: []*os.File{end, events}},
	}
	if err := control.Call(boot.ContMgrCreateTraceSession, &args, nil); err != nil {
		return fmt.Errorf("guard the sentry and trace it: %w", err)
	}
	return nil
}
