package emitter

import (
	"fmt"

	"gvisor.dev/gvisor/pkg/sentry/seccheck"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
)

// Sink is the name of the sink of [Register] in the configuration of a trace session. Its
// file is the sentry's end of the socket of trace points.
//
// Make the session between container.New and Start or Restore. Earlier there is no sentry,
// and later the first processes are missed. A restored sentry is a new process, so it needs
// a new session.
const Sink = "paddock"

// Points returns the trace points of the event kinds, for the configuration of a session.
func Points(kinds []audit.Kind) ([]seccheck.PointConfig, error) {
	who := []string{"group_id", "parent_thread_group_id", "credentials", "process_name"}
	var points []seccheck.PointConfig
	add := func(name string, fields ...string) {
		points = append(points, seccheck.PointConfig{Name: name, ContextFields: append(fields, who...)})
	}
	for _, k := range kinds {
		switch k {
		case audit.Exec:
			add("sentry/execve", "cwd")
		case audit.Clone:
			add("sentry/clone")
		case audit.Exited:
			add("sentry/exit_notify_parent")
		case audit.Connect:
			add("syscall/connect/enter")
		case audit.Open:
			for _, call := range opening() {
				add(fmt.Sprintf("syscall/sysno/%d/exit", call))
			}
		default:
			return nil, fmt.Errorf("audit %s: %w", k, paddock.Invalid)
		}
	}
	return points, nil
}
