package gvisor

import (
	"os"
	"time"

	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor/procevent"
)

// receive is container.Kernel.Receive.
func receive(events *os.File, sandbox string, sink audit.Sink) error {
	return procevent.Receive(events, procevent.Options{Sandbox: sandbox, Sink: sink, Now: time.Now})
}
