package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// shakes makes a handshake for a host, and gives the certificate that was shown.
func shakes(t *testing.T, get func(*tls.ClientHelloInfo) (*tls.Certificate, error), roots *x509.CertPool, host string) (*x509.Certificate, error) {
	t.Helper()
	here, there := net.Pipe()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer here.Close()
	defer there.Close()
	wg.Go(func() {
		_ = tls.Server(there, &tls.Config{GetCertificate: get, MinVersion: tls.VersionTLS12}).Handshake() // the client tells
	})
	c := tls.Client(here, &tls.Config{RootCAs: roots, ServerName: host, MinVersion: tls.VersionTLS12})
	if err := c.Handshake(); err != nil {
		return nil, err
	}
	return c.ConnectionState().PeerCertificates[0], nil
}

func trust(t *testing.T, o *Own) *x509.CertPool {
	t.Helper()
	data, err := os.ReadFile(o.File())
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(data) {
		t.Fatal("no certificate")
	}
	return pool
}

func names() []string {
	return []string{"localhost", "127.0.0.1", "::1", "example.com", "*.example.com"}
}

func TestAnOwnAuthorityIsMadeOnceAndNamesTheServerAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	o, err := OpenOwn(dir, names())
	if err != nil || !o.Fresh() {
		t.Fatal(err)
	}
	roots := trust(t, o)
	for _, host := range []string{"localhost", "127.0.0.1", "::1", "example.com", "8080-box.example.com"} {
		if _, err := shakes(t, o.Get, roots, host); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	for _, host := range []string{"example.org", "a.b.example.com", "127.0.0.2"} {
		if _, err := shakes(t, o.Get, roots, host); err == nil {
			t.Errorf("%s is named", host)
		}
	}
	again, err := OpenOwn(dir, names())
	if err != nil || again.Fresh() {
		t.Fatalf("%v: %v", again, err)
	}
	if _, err := shakes(t, again.Get, roots, "localhost"); err != nil {
		t.Errorf("the second server is not trusted: %v", err)
	}
}

// Who steals the key has the server's hosts, and no other.
func TestAnOwnAuthorityIsBelievedForNothingElse(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	o, err := OpenOwn(dir, names())
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"bank.example", "10.0.0.1", "::2", "example.com.evil.example"} {
		o.names = []string{name}
		if err := o.renew(); err == nil {
			t.Errorf("%s is believed", name)
		}
	}
}

func TestAnAuthorityThatMayNotNameTheServerIsReplaced(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "tls")
	if _, err := OpenOwn(dir, names()); err != nil {
		t.Fatal(err)
	}
	o, err := OpenOwn(dir, []string{"localhost", "other.example", "*.other.example"})
	if err != nil || !o.Fresh() {
		t.Fatalf("%v, %v", o, err)
	}
	if _, err := shakes(t, o.Get, trust(t, o), "80-a.other.example"); err != nil {
		t.Error(err)
	}
}

func TestAnOwnCertificateIsRenewedBeforeItEnds(t *testing.T) {
	now := time.Now()
	o, err := openOwn(filepath.Join(t.TempDir(), "tls"), names(), func() time.Time { return now })
	if err != nil {
		t.Fatal(err)
	}
	get := func() *tls.Certificate {
		c, err := o.Get(nil)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	first := get()
	now = now.Add(leafLife - renewBefore - time.Hour)
	if get() != first {
		t.Error("it was renewed too soon")
	}
	now = now.Add(2 * time.Hour)
	if second := get(); second == first || !second.Leaf.NotAfter.After(first.Leaf.NotAfter) {
		t.Error("it was not renewed")
	}
}

func TestTheKeyOfAnAuthorityIsItsOwnersAlone(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes say nothing there")
	}
	dir := filepath.Join(t.TempDir(), "tls")
	if _, err := OpenOwn(dir, names()); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "ca-key.pem")
	info, err := os.Stat(key)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if err := os.Chmod(key, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenOwn(dir, names()); paddock.KindOf(err) != paddock.Denied {
		t.Errorf("others may read it: %v", err)
	}
	if err := os.Chmod(key, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenOwn(dir, names()); paddock.KindOf(err) != paddock.Invalid {
		t.Errorf("a damaged one: %v", err)
	}
	if _, err := OpenOwn(dir, nil); paddock.KindOf(err) != paddock.Invalid {
		t.Errorf("no name: %v", err)
	}
}

// pair makes files as somebody who renews them does.
func pair(t *testing.T, dir string, host string) {
	t.Helper()
	o, err := OpenOwn(filepath.Join(t.TempDir(), "tls"), []string{host})
	if err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"ca.pem": "cert.pem", "ca-key.pem": "key.pem"} {
		data, err := os.ReadFile(filepath.Join(filepath.Dir(o.File()), from))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, to), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFilesAreReadAgainWhenTheyChange(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	if _, err := OpenFiles(cert, key, nil); paddock.KindOf(err) != paddock.Invalid {
		t.Errorf("none: %v", err)
	}
	pair(t, dir, "one.example")
	var told strings.Builder
	f, err := OpenFiles(cert, key, slog.New(slog.NewTextHandler(&told, nil)))
	if err != nil {
		t.Fatal(err)
	}
	f.now = func() time.Time { return now }
	shows := func(want string) {
		t.Helper()
		now = now.Add(2 * lookEvery)
		c, err := f.Get(nil)
		if err != nil || c.Leaf == nil && len(c.Certificate) == 0 {
			t.Fatal(err)
		}
		leaf, err := x509.ParseCertificate(c.Certificate[0])
		if err != nil || !strings.HasSuffix(leaf.Subject.CommonName, want) {
			t.Errorf("%v is shown, not %s: %v", leaf.Subject, want, err)
		}
	}
	shows("one.example")
	if err := os.WriteFile(cert, []byte("half"), 0o600); err != nil { // who writes is not done
		t.Fatal(err)
	}
	shows("one.example")
	pair(t, dir, "second.example")
	if err := os.Chtimes(cert, now, now.Add(time.Hour)); err != nil { // clocks of files may be coarse
		t.Fatal(err)
	}
	shows("second.example")
	pair(t, dir, "third.example")
	f.Look() // whatever their times, and without a wait
	now = now.Add(-2 * lookEvery)
	shows("third.example")
	if err := os.Remove(key); err != nil {
		t.Fatal(err)
	}
	shows("third.example")
	shows("third.example")
	if !strings.Contains(told.String(), "read anew") || !strings.Contains(told.String(), "cannot be read") {
		t.Errorf("the log: %s", &told)
	}
}
