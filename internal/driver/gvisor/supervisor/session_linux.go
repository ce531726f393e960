package supervisor

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
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/supervisor/hostwatch"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/supervisor/overlaysize"
)

// guardName is the name of the guard in the configuration of a trace session.
const guardName = "paddock-guard"

// A guard is a sink that uses no trace points. gVisor makes a session after the sentry's
// setup and before any code of the guest runs. At this moment the sentry must enlist with
// the broker. It cannot enlist earlier: under a filter that reports calls, no process may
// install another filter with a listener, and the processes that run the guest's code,
// which the sentry has made by then, have such a filter.
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

// begin makes the trace session. With it the sentry enlists with the broker and reports the
// given kinds of events on events.
//
// With a watcher the sentry also tells it what commands watch, and tells them what it reports. had are the mounts of
// a sentry whose commands may have watches already.
func begin(control *urpc.Client, events *os.File, kinds []paddock.AuditKind, watch *boxinit.HostWatch, had []string) error {
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
			Sinks: []seccheck.SinkConfig{{Name: guardName}, {Name: emitter.Sink}},
		},
		FilePayload: urpc.FilePayload{Files: []*os.File{end, events}},
	}
	if watch != nil {
		defer watch.Peer().Close()
		args.Config.Points = append(args.Config.Points, hostwatch.Point())
		args.Config.Sinks = append(args.Config.Sinks, seccheck.SinkConfig{Name: hostwatch.Sink, Config: hostwatch.Config(had)})
		args.Files = append(args.Files, watch.Peer())
	}
	args.Config.Sinks = append(args.Config.Sinks, seccheck.SinkConfig{Name: overlaysize.Sink})
	if err := control.Call(boot.ContMgrCreateTraceSession, &args, nil); err != nil {
		return fmt.Errorf("start the guard and the trace session: %w", err)
	}
	return nil
}
