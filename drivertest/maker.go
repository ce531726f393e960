package drivertest

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// makerVariable holds an order. It turns the test binary into a maker: a process that makes
// sandboxes and is then killed.
const makerVariable = "PADDOCK_DRIVERTEST_MAKER"

// An order describes what a maker makes.
type order struct {
	State string         `json:"state"`
	Specs []paddock.Spec `json:"specs"`
	Args  []string       `json:"args"` // the command to leave running in each sandbox
}

// A made describes what a maker made.
type made struct {
	Sandboxes []paddock.ID  `json:"sandboxes"`
	Processes []paddock.PID `json:"processes"`
	Error     string        `json:"error,omitempty"`
}

// Main is the TestMain of a driver's package. It runs the tests. If the suite started the
// test binary as a maker, it makes sandboxes with the driver that open returns, and waits
// to be killed. It does not return.
func Main(m *testing.M, open func(state string) (paddock.Driver, error)) {
	text, ok := os.LookupEnv(makerVariable)
	if !ok {
		os.Exit(m.Run())
	}
	if err := serveOrder(text, open); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// serveOrder makes the ordered sandboxes, reports them, and waits to be killed. If the
// suite ends first, it removes them.
func serveOrder(text string, open func(state string) (paddock.Driver, error)) error {
	if err := os.Unsetenv(makerVariable); err != nil {
		return err
	}
	var o order
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return fmt.Errorf("read the order: %w", err)
	}
	d, err := open(o.State)
	if err != nil {
		return err
	}
	ctx := context.Background()
	var m made
	var boxes []paddock.Sandbox
	for _, spec := range o.Specs {
		sb, err := d.Create(ctx, spec)
		if err != nil {
			m.Error = fmt.Sprintf("create: %v", err)
			break
		}
		boxes = append(boxes, sb)
		m.Sandboxes = append(m.Sandboxes, sb.ID())
		p, err := sb.Start(ctx, paddock.Cmd{Args: o.Args, Output: paddock.Output{Detached: true}})
		if err != nil {
			m.Error = fmt.Sprintf("start: %v", err)
			break
		}
		m.Processes = append(m.Processes, p.ID())
	}
	err = json.NewEncoder(os.Stdout).Encode(m)
	// The suite holds the other end and never writes.
	_, readErr := io.Copy(io.Discard, os.Stdin)
	errs := []error{err, readErr}
	for _, sb := range boxes {
		errs = append(errs, sb.Remove(ctx))
	}
	return errors.Join(append(errs, d.Close())...)
}

// A maker is another process that made sandboxes.
type maker struct {
	made
	cmd *exec.Cmd
}

// maker starts a process that makes sandboxes and leaves args running in each.
func (s *suite) maker(t testing.TB, args []string, specs ...paddock.Spec) *maker {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(order{State: s.state, Specs: specs, Args: args})
	if err != nil {
		t.Fatal(err)
	}
	// A package without Main runs no test and prints nothing.
	cmd := exec.Command(self, "-test.run=^$")
	cmd.Env = append(os.Environ(), makerVariable+"="+string(text))
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	m := &maker{cmd: cmd}
	t.Cleanup(func() {
		_ = stdin.Close() // kill may have closed it
		m.kill(t)
	})
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		t.Fatalf("the maker said nothing (%v): the package's TestMain has to call drivertest.Main", err)
	}
	if err := json.Unmarshal(line, &m.made); err != nil {
		t.Fatalf("the maker said %q: the package's TestMain has to call drivertest.Main", line)
	}
	if m.Error != "" {
		t.Fatalf("the maker: %s", m.Error)
	}
	return m
}

// kill kills the maker by signal 9 and waits for its end.
func (m *maker) kill(t testing.TB) {
	t.Helper()
	if m.cmd.ProcessState != nil {
		return
	}
	if err := m.cmd.Process.Kill(); err != nil {
		t.Errorf("kill the maker: %v", err)
	}
	// The error reports the signal.
	_ = m.cmd.Wait()
}
