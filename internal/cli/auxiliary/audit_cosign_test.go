package auxiliary

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	containername "github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/paddock-sandbox/paddock/internal/audit/attestation"
	"github.com/paddock-sandbox/paddock/internal/cli/clitest"
)

// cosignVariable names the program cosign, because a build of it takes half an hour.
const cosignVariable = "PADDOCK_TEST_COSIGN"

// A verifier is the program cosign, with a public key and an attestation.
type verifier struct {
	t                      *testing.T
	program, key, attested string
}

// accepts returns cosign's verdict on what the arguments name, and its words.
func (v verifier) accepts(args ...string) (bool, string) {
	v.t.Helper()
	c := exec.CommandContext(v.t.Context(), v.program, append([]string{
		"verify-blob-attestation", "--key", v.key, "--signature", v.attested, "--type", attestation.PredicateType, "--insecure-ignore-tlog=true",
	}, args...)...)
	c.Env = []string{"HOME=" + v.t.TempDir(), "PATH=" + os.Getenv("PATH")}
	out, err := c.CombinedOutput()
	if err != nil && !bytes.Contains(out, []byte("Error: ")) {
		v.t.Fatalf("%v: %s", err, out)
	}
	return err == nil, string(out)
}

func TestCosignAcceptsAnAttestationAndNoOther(t *testing.T) {
	program := os.Getenv(cosignVariable)
	if program == "" {
		t.Skip("set " + cosignVariable + " to the program cosign: GOBIN=DIR go install github.com/sigstore/cosign/v2/cmd/cosign@v2.6.5")
	}
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("there is no openssl here, which makes keys")
	}
	for name, args := range map[string][]string{
		"Ed25519": {"-algorithm", "ed25519"},
		"ECDSA":   {"-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256"},
		"RSA":     {"-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:3072"},
	} {
		t.Run(name, func(t *testing.T) {
			private, public := filepath.Join(t.TempDir(), "key.pem"), filepath.Join(t.TempDir(), "public.pem")
			for _, c := range []*exec.Cmd{
				exec.CommandContext(t.Context(), openssl, append([]string{"genpkey", "-out", private}, args...)...),
				exec.CommandContext(t.Context(), openssl, "pkey", "-in", private, "-pubout", "-out", public),
			} {
				if out, err := c.CombinedOutput(); err != nil {
					t.Fatalf("%v: %s", err, out)
				}
			}
			image, digest := pushed(t)
			b := newAttestedRun(t, "--key", private, "--image", digest)
			v := verifier{t, program, public, b.sealed}
			cosignJudges(t, b, v)
			cosignJudgesImage(t, v, image)
		})
	}
}

// pushed returns the name of an image in a registry of this test, and its digest.
func pushed(t *testing.T) (name, digest string) {
	t.Helper()
	hub := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(hub.Close)
	image, err := random.Image(64, 1)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := containername.ParseReference(strings.TrimPrefix(hub.URL, "http://") + "/made:latest")
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref, image); err != nil {
		t.Fatal(err)
	}
	hash, err := image.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return ref.Context().Digest(hash.String()).String(), hash.String()
}

// cosignJudgesImage attaches the attestation to an image, and has it verified there.
func cosignJudgesImage(t *testing.T, v verifier, image string) {
	run := func(args ...string) (string, error) {
		c := exec.CommandContext(t.Context(), v.program, args...)
		c.Env = []string{"HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}
		out, err := c.CombinedOutput()
		return string(out), err
	}
	if out, err := run("attach", "attestation", "--attestation", v.attested, image); err != nil {
		t.Fatalf("attach: %v: %s", err, out)
	}
	verify := []string{"verify-attestation", "--key", v.key, "--type", attestation.PredicateType, "--insecure-ignore-tlog=true", image}
	if out, err := run(verify...); err != nil {
		t.Errorf("it refuses the attestation of the image: %v: %s", err, out)
	}
	other, _ := pushed(t) // which the attestation is not about
	if out, err := run("attach", "attestation", "--attestation", v.attested, other); err != nil {
		t.Fatalf("attach: %v: %s", err, out)
	}
	verify[len(verify)-1] = other
	if out, err := run(verify...); err == nil {
		t.Errorf("it accepts the attestation of another image: %s", out)
	}
}

func cosignJudges(t *testing.T, b *attestedRun, v verifier) {
	manifest := filepath.Join(b.dir, "manifest")
	clitest.Plant(t, manifest, b.must("audit", "manifest", b.workspace), 0o600)
	if ok, out := v.accepts(manifest); !ok {
		t.Fatalf("it refuses the manifest: %s", out)
	}
	// It compares no digests but SHA-256, and so no commits.
	if ok, out := v.accepts("--digest", commit, "--digestAlg", "gitCommit"); ok || !strings.Contains(out, "no matching subject digest") {
		t.Errorf("of the commit: %v, %s", ok, out)
	}
	if ok, out := v.accepts("--check-claims=false", manifest); !ok {
		t.Errorf("it refuses the signature: %s", out)
	}
	clitest.Plant(t, manifest+".other", b.must("audit", "manifest", b.workspace)+"\n", 0o600)
	if ok, out := v.accepts(manifest + ".other"); ok {
		t.Errorf("it accepts another manifest: %s", out)
	}
	another := v
	another.key = filepath.Join(b.dir, "another.pem")
	_, key, _ := strings.Cut(b.must("audit", "key"), "\n")
	clitest.Plant(t, another.key, key, 0o600)
	if ok, out := another.accepts(manifest); ok {
		t.Errorf("it accepts another key: %s", out)
	}

	data, err := os.ReadFile(b.sealed)
	if err != nil {
		t.Fatal(err)
	}
	var e struct {
		PayloadType string              `json:"payloadType"`
		Payload     string              `json:"payload"`
		Signatures  []map[string]string `json:"signatures"`
	}
	if err := json.Unmarshal(data, &e); err != nil {
		t.Fatal(err)
	}
	payload, err := base64.StdEncoding.DecodeString(e.Payload)
	if err != nil {
		t.Fatal(err)
	}
	i := bytes.Index(payload, []byte(`"tier":"gvisor"`)) + len(`"tier":"`)
	payload[i] ^= 1
	e.Payload = base64.StdEncoding.EncodeToString(payload)
	changed, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	v.attested = filepath.Join(b.dir, "changed.dsse")
	clitest.Plant(t, v.attested, string(changed)+"\n", 0o600)
	if ok, out := v.accepts(manifest); ok {
		t.Errorf("it accepts a statement with a changed byte: %s", out)
	}
}
