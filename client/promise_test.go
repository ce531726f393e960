package client_test

import (
	"crypto/tls"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/driver/sim"
	"github.com/paddock-sandbox/paddock/internal/testrun/sample"
)

func simulated(string) (paddock.Driver, error) { return sim.New(sim.Options{}) }

func promises(t *testing.T, h *host, seed string) {
	t.Helper()
	harness := h.harness(t)
	harness.Sample = seed
	harness.Memory = true
	drivertest.Run(t, harness)
}

// Every promise of a driver holds through a client and a server.
func TestPromisesOverASocket(t *testing.T) {
	promises(t, &host{driver: simulated}, sample.Seed("client over a socket"))
}

func TestPromisesOverTCP(t *testing.T) {
	promises(t, &host{driver: simulated, listen: onTCP}, sample.Seed("client over TCP"))
}

// overHTTP2 serves a driver with TLS, and so over HTTP/2.
func overHTTP2(t *testing.T, driver func(string) (paddock.Driver, error)) *host {
	t.Helper()
	example := httptest.NewTLSServer(nil)
	defer example.Close()
	config := &tls.Config{Certificates: example.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}
	trust := example.Client().Transport.(interface{ Clone() *http.Transport }).Clone().TLSClientConfig
	return &host{driver: driver, tls: trust, listen: func(state string) (net.Listener, string, error) {
		l, _, err := onTCP(state)
		if err != nil {
			return nil, "", err
		}
		return tls.NewListener(l, config), "https://" + l.Addr().String(), nil
	}}
}
