package gvisor

import (
	"os"
	"time"

	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/trace"
)

// receive is container.Kernel.Receive.
func receive(events *os.File, sandbox string, sink audit.Sink) error {
	return trace.Receive(events, trace.Options{Sandbox: sandbox, Sink: sink, Now: time.Now})
}
