package parent

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"syscall"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/gatewayclient"
	"github.com/paddock-sandbox/paddock/internal/hostroot"
	"github.com/paddock-sandbox/paddock/internal/sys"
)

// wayOut makes the way out that a spec asks for, and puts into the spec what the
// sandbox must know of it. Nil is none.
func (d *Driver) wayOut(spec *paddock.Spec) (*gatewayclient.Gateway, error) {
	if spec.Policy.Network.Mode != paddock.NetworkList {
		return nil, nil
	}
	out, err := gatewayclient.New(gatewayclient.Options{
		Sandbox: string(spec.ID), Policy: spec.Policy.Network, Ask: d.o.Ask, Judge: d.o.Judge, Login: d.o.Login, Audit: d.o.Audit, Hosts: d.o.Hosts, Roots: d.o.Roots,
	})
	if err != nil {
		return nil, err
	}
	variables, err := out.Environment()
	if err != nil {
		return nil, err
	}
	if len(variables) > 0 {
		maps.Copy(variables, spec.Env) // what is asked for by name wins
		spec.Env = variables
	}
	return out, nil
}

// startGateway starts the gateway's process, and does not wait for it.
func (d *Driver) startGateway(ctx context.Context, out *gatewayclient.Gateway) error {
	open := d.o.Gateway
	if open == nil {
		open = func() (*os.File, error) { return os.Open("/proc/self/exe") }
	}
	program, err := open()
	if err != nil {
		return fmt.Errorf("the gateway's program: %w", err)
	}
	defer program.Close()
	return out.Start(ctx, program)
}

// within is a spec as the child needs it: whoever takes over the child must not
// find a secret in it.
func within(spec paddock.Spec) paddock.Spec {
	spec.Policy.Network = hidden(spec.Policy.Network)
	return spec
}

// hidden leaves of a list whether there is one, and of anything else no secret.
func hidden(p paddock.NetworkPolicy) paddock.NetworkPolicy {
	if p.Mode == paddock.NetworkList {
		return paddock.NetworkPolicy{Mode: p.Mode}
	}
	p.Secrets = make([]paddock.Secret, len(p.Secrets))
	return p
}

// maxBundle bounds the system's certificates, in bytes.
const maxBundle = 4 << 20

// believed gives the certificates that the host's system trusts, which the child
// cannot read; nothing where there are none.
func believed() []byte {
	for _, name := range hostroot.Bundles() {
		f, err := os.Open(name)
		if err != nil {
			continue
		}
		data, err := io.ReadAll(io.LimitReader(f, maxBundle))
		f.Close()
		if err == nil {
			return append(data, '\n')
		}
	}
	return nil
}

// give hands a way to dial to the child. Its packet is the order's companion: the
// child takes it before it reads on.
func give(control net.Conn, out *gatewayclient.Gateway) error {
	channel, err := out.Channel()
	if err != nil {
		return err
	}
	defer channel.Close()
	conn, ok := control.(*net.UnixConn)
	if !ok {
		return fmt.Errorf("hand over the network: %T is no socket: %w", control, paddock.Internal)
	}
	fd, err := sys.Descriptor(channel)
	if err != nil {
		return err
	}
	if _, _, err := conn.WriteMsgUnix([]byte{0}, syscall.UnixRights(fd), nil); err != nil {
		return fmt.Errorf("hand over the network: %w: %w", err, paddock.Unavailable)
	}
	return nil
}

// listHow is how rules about the network are enforced.
const listHow = "the process has no socket to the network: a gateway in a process of its own dials for it, and decides by the rules"

// network puts what the host knows of the way out into a status.
func (s *sandbox) network(st *paddock.Status) {
	st.Traffic = &paddock.Traffic{} // whatever the child says
	if s.out == nil {
		return
	}
	*st.Traffic = s.out.Traffic()
	state := s.out.State()
	st.Refused = gatewayclient.JoinRefusals(st.Refused, state.Refused)
	enforced := append([]paddock.Finding(nil), st.Enforced...)
	for i, f := range enforced {
		if f.Control == paddock.ControlNetwork {
			enforced[i] = state.Finding(listHow)
		}
	}
	st.Enforced = enforced
}

// updateNetwork puts the rules of a policy, which was checked, in place of the present ones.
func (s *sandbox) updateNetwork(ctx context.Context, p *paddock.Policy) error {
	if p == nil || s.out == nil {
		return nil
	}
	_, err := s.out.Update(ctx, p.Network)
	return err
}
