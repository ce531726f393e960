package serve

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"

	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/ingress/certificate"
)

// tlsFlags say where a server's certificate comes from, besides files.
type tlsFlags struct {
	self      bool
	acme      string
	email     string
	directory string
}

func (f *tlsFlags) register(fs *pflag.FlagSet) {
	fs.BoolVar(&f.self, "tls-self", false, "encrypt with a certificate of an authority of this server's own, which is made once in --state and is for who calls to trust")
	fs.StringVar(&f.acme, "acme", "", "encrypt with certificates for this `domain` from Let's Encrypt, whose terms you agree to by this; they reach the server at port 443")
	fs.StringVar(&f.email, "acme-email", "", "`address` that the authority writes to")
	fs.StringVar(&f.directory, "acme-directory", "", "`URL` of the directory of another authority that speaks ACME")
}

// secure gives how a server encrypts; nil is that it does not. allow agrees to hosts beside the
// domain that may have a certificate.
func secure(a *cli.App, f *serveFlags, o *operation, allow func(ctx context.Context, host string) error) (*tls.Config, error) {
	log := o.log
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}
	switch {
	case f.cert != "":
		if info, err := os.Stat(f.certKey); err == nil { // of what is not there, reading tells
			if err := secretive(info); err != nil {
				return nil, cli.WithHint(fmt.Errorf("--tls-key %s: %w", f.certKey, err), "chmod o-rwx,g-w %s", f.certKey)
			}
		}
		files, err := openFiles(f, log)
		if err != nil {
			return nil, err
		}
		o.files, config.GetCertificate = files, files.Get
	case f.tls.self:
		dir, err := f.store.dir(a)
		if err != nil {
			return nil, err
		}
		hostname, _ := os.Hostname() // without one it is not named
		own, err := certificate.OpenOwn(filepath.Join(dir, "tls"), f.names(hostname))
		if err != nil {
			return nil, cli.WithHint(fmt.Errorf("--tls-self: %w", err), "--state names another directory")
		}
		log.Info("who calls has to trust the authority of this server; for paddock and other programs of Go: SSL_CERT_FILE=FILE; for curl: --cacert FILE; for a browser: import FILE as an authority",
			"file", own.File(), "new", own.Fresh())
		config.GetCertificate = own.Get
	case f.tls.acme != "":
		dir, err := f.store.dir(a)
		if err != nil {
			return nil, err
		}
		m, err := certificate.NewACME(certificate.ACMEOptions{
			Domain: f.tls.acme, Email: f.tls.email, Directory: f.tls.directory, Dir: filepath.Join(dir, "acme"), Allow: allow,
		})
		if err != nil {
			return nil, fmt.Errorf("--acme: %w", err)
		}
		config.GetCertificate = m.Get
		config.NextProtos = append(config.NextProtos, m.Protocols()...)
	default:
		return nil, nil
	}
	return config, nil
}

// openFiles reads the certificate of --tls-cert.
func openFiles(f *serveFlags, log *slog.Logger) (*certificate.Files, error) {
	files, err := certificate.OpenFiles(f.cert, f.certKey, log)
	if err != nil {
		return nil, cli.WithHint(fmt.Errorf("--tls-cert: %w", err), "both are files in PEM, and belong to each other")
	}
	return files, nil
}

// dir is where what belongs to the server is kept: that of --state, or the caller's own.
func (f *storeFlags) dir(a *cli.App) (string, error) {
	dir, err := stateDir(a, f.state)
	if err == nil && dir == "" {
		if dir, err = a.Data(); err == nil {
			dir = filepath.Join(dir, "server")
			err = os.MkdirAll(dir, 0o700)
		}
	}
	if err != nil {
		return "", fmt.Errorf("a place for what the server keeps: %w", err)
	}
	return dir, nil
}
