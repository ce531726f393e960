package auxiliary

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/cli/clitest"
	"github.com/paddock-sandbox/paddock/internal/cli/fake"
)

// protectedKey makes a key of OpenSSH with a passphrase, and the file of its public half.
func protectedKey(t *testing.T, dir string) (name string, key *ecdsa.PrivateKey) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(key, "me@work", []byte("open sesame"))
	if err != nil {
		t.Fatal(err)
	}
	public, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	name = filepath.Join(dir, "id")
	clitest.Plant(t, name, string(pem.EncodeToMemory(block)), 0o600)
	clitest.Plant(t, name+".pub", string(ssh.MarshalAuthorizedKey(public)), 0o600)
	return name, key
}

func TestAProtectedKeySignsWithItsPassphrase(t *testing.T) {
	b := newAttestedRun(t)
	name, _ := protectedKey(t, b.dir)
	attest := func(env map[string]string) (int, string, string) {
		v := invoke(b.dir, env, []cli.Tier{clitest.Recording(&fake.Fake{})}, "audit", "attest", b.record, "--commit", commit, "--key", name)
		code := v.Run(t.Context())
		return code, v.Stdout.String(), v.Stderr.String()
	}
	code, stdout, stderr := attest(map[string]string{"PADDOCK_KEY_PASSPHRASE": "open sesame"})
	if code != 0 || stderr != "" {
		t.Fatalf("exit status %d, %q", code, stderr)
	}
	clitest.Plant(t, b.sealed, stdout, 0o600)
	if code, _, stderr := b.run("audit", "verify", "--attestation", b.sealed, "--commit", commit, "--attestation-key", name+".pub"); code != 0 {
		t.Errorf("exit status %d, %q", code, stderr)
	}
	if code, stdout, stderr := attest(map[string]string{"PADDOCK_KEY_PASSPHRASE": "wrong"}); code != 125 || stdout != "" || !strings.Contains(stderr, "the passphrase is not that of the key\nhint: the passphrase is PADDOCK_KEY_PASSPHRASE") {
		t.Errorf("exit status %d, %q, %q", code, stdout, stderr)
	}
	if code, stdout, stderr := attest(nil); code != 125 || stdout != "" || !strings.Contains(stderr, "there is no terminal to ask for it, nor PADDOCK_KEY_PASSPHRASE") {
		t.Errorf("exit status %d, %q, %q", code, stdout, stderr)
	}
}

// serveAgent serves a keyring at a socket.
func serveAgent(t *testing.T, name string, ring agent.Agent) {
	t.Helper()
	l, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = agent.ServeAgent(ring, conn) // it ends with the connection
			conn.Close()
		}
	})
	t.Cleanup(func() { l.Close(); wg.Wait() })
}

func TestAnAgentSignsAnAttestation(t *testing.T) {
	b := newAttestedRun(t)
	name, key := protectedKey(t, b.dir)
	ring := agent.NewKeyring()
	short := t.TempDir()
	serveAgent(t, filepath.Join(short, "agent"), ring)
	attest := func(env map[string]string) (int, string, string) {
		v := invoke(b.dir, env, []cli.Tier{clitest.Recording(&fake.Fake{})}, "audit", "attest", b.record, "--commit", commit, "--key", name+".pub")
		code := v.Run(t.Context())
		return code, v.Stdout.String(), v.Stderr.String()
	}
	env := map[string]string{"SSH_AUTH_SOCK": filepath.Join(short, "agent")}
	if code, _, stderr := attest(env); code != 125 || !strings.Contains(stderr, "the SSH agent does not have the key SHA256:") || !strings.Contains(stderr, "ssh-add -l") {
		t.Errorf("without the key: exit status %d, %q", code, stderr)
	}
	if err := ring.Add(agent.AddedKey{PrivateKey: key}); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := attest(env)
	if code != 0 || stderr != "" {
		t.Fatalf("exit status %d, %q", code, stderr)
	}
	clitest.Plant(t, b.sealed, stdout, 0o600)
	if code, _, stderr := b.run("audit", "verify", "--attestation", b.sealed, "--commit", commit, "--attestation-key", name+".pub"); code != 0 {
		t.Errorf("exit status %d, %q", code, stderr)
	}
	if code, _, stderr := attest(nil); code != 125 || !strings.Contains(stderr, "SSH_AUTH_SOCK is not set") {
		t.Errorf("without an agent: exit status %d, %q", code, stderr)
	}
	if code, _, stderr := attest(map[string]string{"SSH_AUTH_SOCK": filepath.Join(short, "none")}); code != 125 || !strings.Contains(stderr, "is the agent of SSH_AUTH_SOCK running?") {
		t.Errorf("with an agent that is gone: exit status %d, %q", code, stderr)
	}
}
