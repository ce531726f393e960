package box

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// certificate has the form of one; nobody reads what is in it here.
const certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"

func TestOnlyFilesOfCertificatesAreTakenOver(t *testing.T) {
	dir := t.TempDir()
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"OTHER": dir + "/good"}
	for name, file := range map[string]struct{ name, text string }{
		"SSL_CERT_FILE":       {"good", "# the company's\n" + certificate + certificate},
		"REQUESTS_CA_BUNDLE":  {"key", certificate + "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n"},
		"CURL_CA_BUNDLE":      {"broken key", certificate + "-----BEGIN RSA PRIVATE KEY-----\nAA"},
		"PIP_CERT":            {"other", "a line\n"},
		"AWS_CA_BUNDLE":       {"empty", ""},
		"GIT_SSL_CAINFO":      {"request", "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n"},
		"NODE_EXTRA_CA_CERTS": {"link", ""},
	} {
		env[name] = filepath.Join(dir, file.name)
		if file.name == "link" {
			err = os.Symlink("good", env[name])
		} else {
			err = os.WriteFile(env[name], []byte(file.text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	env["CARGO_HTTP_CAINFO"], env["DENO_CERT"] = dir, "good"
	got := Certificates(func(name string) (string, bool) { v, ok := env[name]; return v, ok })
	if want := map[string]string{"SSL_CERT_FILE": dir + "/good", "NODE_EXTRA_CA_CERTS": dir + "/good"}; !maps.Equal(got, want) {
		t.Errorf("%q, and not %q", got, want)
	}
}
