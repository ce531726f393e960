package auxiliary

import (
	"context"
	"crypto"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit/attestation"
	"github.com/paddock-sandbox/paddock/internal/audit/chain"
	"github.com/paddock-sandbox/paddock/internal/cli"
)

const (
	passphraseVariable = "PADDOCK_KEY_PASSPHRASE"
	agentVariable      = "SSH_AUTH_SOCK"
	agentPatience      = 5 * time.Minute // it may ask the user
)

// signingKey gives the key in a file, or the caller's own. done must be called.
func signingKey(ctx context.Context, a *cli.App, name string) (_ attestation.Signer, done func(), err error) {
	done = func() {}
	if name == "" {
		own, err := a.AuditKey(chain.ReadKey)
		if errors.Is(err, paddock.NotFound) {
			return nil, nil, cli.WithHint(fmt.Errorf("there is no key to sign with, because this user has signed no record on this machine: %w", paddock.NotFound), "name one with --key FILE, or make yours with `paddock audit key`")
		}
		if err != nil {
			return nil, nil, err
		}
		signer, err := attestation.NewSigner(own.Signer())
		return signer, done, err
	}
	data, err := cli.ReadDocument("private key", name)
	if err != nil {
		return nil, nil, err
	}
	public, err := attestation.ParsePublic(data)
	switch {
	case err == nil:
		return agentKey(ctx, a, name, public)
	case errors.Is(err, paddock.Unsupported): // a public key, of another kind
		return nil, nil, cli.WithHint(fmt.Errorf("--key %s: %w", name, err), "%s", hintForKey(err))
	}
	signer, err := attestation.ParsePrivate(data, func() ([]byte, error) { return passphrase(a, name) })
	if err != nil {
		return nil, nil, cli.WithHint(fmt.Errorf("--key %s: %w", name, err), "%s", hintForKey(err))
	}
	return signer, done, nil
}

func hintForKey(err error) string {
	if errors.Is(err, paddock.Denied) {
		return "the passphrase is " + passphraseVariable + " if that is set, and is asked for otherwise"
	}
	return "`ssh-keygen -t ed25519` and `openssl genpkey -algorithm ed25519` make a key that can sign; a protected key of OpenSSH may be in your SSH agent: name its .pub file"
}

// passphrase gives the passphrase of a key: from the environment, or from the terminal.
func passphrase(a *cli.App, name string) ([]byte, error) {
	if text, ok := a.Lookup(passphraseVariable); ok {
		return []byte(text), nil
	}
	text, err := a.AskHidden("passphrase of " + name)
	if errors.Is(err, paddock.Invalid) {
		return nil, fmt.Errorf("it is protected by a passphrase, and there is no terminal to ask for it, nor %s: %w", passphraseVariable, paddock.Invalid)
	}
	return []byte(text), err
}

// agentKey gives the key of the caller's SSH agent with a public key.
func agentKey(ctx context.Context, a *cli.App, name string, public crypto.PublicKey) (attestation.Signer, func(), error) {
	where, ok := a.Lookup(agentVariable)
	if !ok || where == "" {
		return nil, nil, cli.WithHint(fmt.Errorf("--key %s: it is a public key, and there is no SSH agent to sign with: %s is not set: %w", name, agentVariable, paddock.Unavailable), "eval $(ssh-agent); ssh-add")
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", where)
	if err != nil {
		return nil, nil, cli.WithHint(fmt.Errorf("--key %s: the SSH agent: %w: %w", name, err, paddock.Unavailable), "is the agent of %s running? eval $(ssh-agent); ssh-add", agentVariable)
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() }) // which ends a question to the agent
	done := func() { stop(); _ = conn.Close() }
	_ = conn.SetDeadline(time.Now().Add(agentPatience)) // sockets support deadlines
	signer, err := attestation.OfAgent(conn, public)
	if err != nil {
		done()
		return nil, nil, cli.WithHint(fmt.Errorf("--key %s: %w", name, err), "`ssh-add -l` lists the keys that it has, and `ssh-add FILE` adds one")
	}
	return signer, done, nil
}

// publicKey gives the key that must have signed the attestation.
func (f *attestedFlags) publicKey(a *cli.App, key string) (crypto.PublicKey, error) {
	flag, name := "--attestation-key", f.key
	if name == "" && key != "" && !chain.IsFingerprint(key) {
		flag, name = "--key", key
	}
	if name == "" {
		own, err := a.AuditKey(chain.ReadKey)
		if errors.Is(err, paddock.NotFound) {
			return nil, cli.WithHint(fmt.Errorf("there is no key to check the attestation with, because this user has signed no record on this machine: %w", paddock.NotFound), "--attestation-key FILE")
		}
		if err != nil {
			return nil, err
		}
		return own.Public(), nil
	}
	data, err := cli.ReadDocument("public key", name)
	if err != nil {
		return nil, err
	}
	public, err := attestation.ParsePublic(data)
	if err != nil {
		return nil, cli.WithHint(fmt.Errorf("%s %s: %w", flag, name, err), "`paddock audit key` prints one, and ~/.ssh/id_ed25519.pub is one")
	}
	return public, nil
}
