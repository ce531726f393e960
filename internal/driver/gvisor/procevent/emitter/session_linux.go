package emitter

import (
	"fmt"

	"gvisor.dev/gvisor/pkg/sentry/seccheck"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
)

// Sink is what a session's configuration calls the sink of [Register]. Its file
// is the sentry's end of the socket of trace points.
//
// A session is made between container.New and Start, or Restore: before that
// there is no sentry, and after it the first processes are not seen. A sentry
// that was restored is a new one, and is told again.
const Sink = "paddock"

// Points gives the points that tell the kinds, for a session's configuration.
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
