package sim_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
)

// connected is a driver whose computers reach one server by every name.
func connected(t *testing.T) (*sim.Driver, *[]string) {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "welcome to "+r.Host) }))
	t.Cleanup(s.Close)
	var dialled []string
	d, err := sim.New(sim.Options{Dial: func(ctx context.Context, host string, port uint16) (net.Conn, error) {
		dialled = append(dialled, fmt.Sprintf("%s:%d", host, port))
		var out net.Dialer
		return out.DialContext(ctx, "tcp", s.Listener.Addr().String())
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d, &dialled
}

func listOf(rules ...paddock.NetworkRule) paddock.Policy {
	return paddock.Policy{Network: paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: rules}}
}

func wrote(t *testing.T, sb paddock.Sandbox, script string) string {
	t.Helper()
	var out bytes.Buffer
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"sh", "-c", script}, Output: paddock.Output{Stdout: &out, Stderr: &out}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Release()
	if _, err := p.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestAProgramsOwnNetworkIsReachedByTheRules(t *testing.T) {
	d, dialled := connected(t)
	info, err := d.Info(t.Context(), paddock.Auto)
	if err != nil || !info.Can(paddock.CanNetworkList) {
		t.Fatalf("%v, %v", info.Capabilities, err)
	}
	sb, err := d.Create(t.Context(), paddock.Spec{Policy: listOf(paddock.NetworkRule{Host: "*.example.com"}, paddock.NetworkRule{Host: "bad.example.com", Deny: true})})
	if err != nil {
		t.Fatal(err)
	}
	if got := wrote(t, sb, "curl -sS http://WWW.example.com/"); !strings.EqualFold(got, "welcome to www.example.com") {
		t.Errorf("%q", got)
	}
	for _, c := range []struct{ target, status string }{
		{"http://bad.example.com/", "status=6"}, {"http://example.org/", "status=6"}, {"http://www.example.com:81/", "status=7"}, {"http://127.0.0.1/", "status=7"},
	} {
		if got := wrote(t, sb, "curl -sS "+c.target+"; echo status=$?"); !strings.Contains(got, c.status) {
			t.Errorf("%s: %q", c.target, got)
		}
	}
	if !slices.Equal(*dialled, []string{"www.example.com:80"}) {
		t.Errorf("dialled %q", *dialled)
	}
	st, err := sb.Status(t.Context())
	if err != nil || len(st.Refused) != 4 || !strings.Contains(st.Refused[1].Remedy, "--allow example.org") {
		t.Errorf("refused %+v, %v", st.Refused, err)
	}
	for _, p := range []struct {
		policy paddock.Policy
		want   string
	}{
		{paddock.Policy{}, "status=6"}, {listOf(paddock.NetworkRule{Host: "*.example.com"}), "status=0"}, {listOf(), "status=6"},
	} {
		if err := sb.Update(t.Context(), paddock.Update{Policy: &p.policy}); err != nil {
			t.Fatal(err)
		}
		if got := wrote(t, sb, "curl -sS http://www.example.com/; echo status=$?"); !strings.Contains(got, p.want) {
			t.Errorf("%+v: %q", p.policy.Network, got)
		}
	}
}

func TestRulesThatAProgramCannotObeyAreRefused(t *testing.T) {
	d, _ := connected(t)
	for _, p := range []paddock.Policy{
		listOf(paddock.NetworkRule{Host: "example.com", Methods: []string{"GET"}}),
		listOf(paddock.NetworkRule{Host: "example.com", Limits: &paddock.NetworkLimits{Bytes: 1}}),
		listOf(paddock.NetworkRule{Host: "example.com", UDP: true}),
		{Network: paddock.NetworkPolicy{Mode: paddock.NetworkList, Secrets: []paddock.Secret{{Name: "KEY", Value: "0123456789abcdef", Hosts: []string{"example.com"}}}}},
		{Network: paddock.NetworkPolicy{Mode: paddock.NetworkHost}},
	} {
		if _, err := d.Create(t.Context(), paddock.Spec{Policy: p}); !errors.Is(err, paddock.Unsupported) {
			t.Errorf("%+v: %v", p.Network, err)
		}
	}
	if _, err := d.Create(t.Context(), paddock.Spec{Policy: listOf(paddock.NetworkRule{Host: "a b"})}); !errors.Is(err, paddock.Invalid) {
		t.Errorf("no host: %v", err)
	}
}

func TestWithoutAWayOutAListIsRefused(t *testing.T) {
	d, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if _, err := d.Create(t.Context(), paddock.Spec{Policy: listOf()}); !errors.Is(err, paddock.Unsupported) {
		t.Errorf("%v", err)
	}
}
