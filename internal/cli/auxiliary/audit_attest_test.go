package auxiliary

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/audit/chain"
	"github.com/paddock-sandbox/paddock/internal/audit/segment"
	"github.com/paddock-sandbox/paddock/internal/cli"
	"github.com/paddock-sandbox/paddock/internal/cli/clitest"
	"github.com/paddock-sandbox/paddock/internal/cli/fake"
)

const commit = "5d1c9e0f7a3b2c4d6e8f0a1b2c3d4e5f60718293"

// An attestedRun is a run that was recorded and attested, with what it left.
type attestedRun struct {
	t                         *testing.T
	dir                       string
	record, workspace, sealed string
}

func (b *attestedRun) run(args ...string) (code int, stdout, stderr string) {
	b.t.Helper()
	v := invoke(b.dir, nil, []cli.Tier{clitest.Recording(&fake.Fake{})}, args...)
	code = v.Run(b.t.Context())
	return code, v.Stdout.String(), v.Stderr.String()
}

func (b *attestedRun) must(args ...string) string {
	b.t.Helper()
	code, stdout, stderr := b.run(args...)
	if code != 0 {
		b.t.Fatalf("%q: exit status %d, %q", args, code, stderr)
	}
	return stdout
}

// verify verifies the attestation with all that it is about.
func (b *attestedRun) verify(more ...string) (code int, stdout, stderr string) {
	b.t.Helper()
	return b.run(append([]string{"audit", "verify", b.record, "--attestation", b.sealed, "--workspace", b.workspace, "--commit", commit}, more...)...)
}

func newAttestedRun(t *testing.T, more ...string) *attestedRun {
	t.Helper()
	dir := t.TempDir()
	b := &attestedRun{t: t, dir: dir, record: filepath.Join(dir, "events"), workspace: filepath.Join(dir, "work"), sealed: filepath.Join(dir, "run.dsse")}
	clitest.Plant(t, filepath.Join(b.workspace, "a/b"), "hello", 0o644)
	clitest.Plant(t, filepath.Join(b.workspace, ".git/HEAD"), commit+"\n", 0o644)
	b.must("run", "--audit", b.record, "--", "true")
	b.attest(more...)
	return b
}

func (b *attestedRun) attest(more ...string) {
	b.t.Helper()
	out := b.must(append([]string{"audit", "attest", b.record, "--workspace", b.workspace, "--commit", "HEAD"}, more...)...)
	clitest.Plant(b.t, b.sealed, out, 0o600)
}

func TestAnAttestedRunIsVerified(t *testing.T) {
	b := newAttestedRun(t)
	code, stdout, stderr := b.verify()
	if code != 0 || stderr != "" || strings.Contains(stdout, "not compared") {
		t.Errorf("exit status %d, %q, %q", code, stdout, stderr)
	}
	for _, want := range []string{b.sealed + ": whole\n", "  commit:    " + commit + "\n", "  sandbox:   fake-1 on tier gvisor, started "} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q lacks %q", stdout, want)
		}
	}
	var answer struct {
		Version   int
		State     string
		Compared  []string
		Statement struct {
			Subject   []struct{ Name string }
			Predicate struct {
				Controls []struct{ Name, Strength string }
				Counts   struct{ Exec *int }
				Paddock  struct{ Digest struct{ SHA256 string } }
			}
		}
	}
	code, stdout, stderr = b.verify("--json")
	if err := json.Unmarshal([]byte(stdout), &answer); err != nil || code != 0 || stderr != "" {
		t.Fatalf("exit status %d, %v, %q, %q", code, err, stdout, stderr)
	}
	p := answer.Statement.Predicate
	if strings.Join(answer.Compared, " ") != "record workspace commit:"+commit || answer.State != "whole" || answer.Version != 1 || len(answer.Statement.Subject) != 2 {
		t.Errorf("%+v", answer)
	}
	// The fake has one control, which it lacks: what is told is what was verified.
	if len(p.Controls) != 1 || p.Controls[0].Name != "seccomp" || p.Controls[0].Strength != "absent" || p.Counts.Exec == nil || len(p.Paddock.Digest.SHA256) != 64 {
		t.Errorf("%+v", p)
	}
	// What nobody named is told.
	code, stdout, _ = b.run("audit", "verify", "--attestation", b.sealed, "--commit", commit)
	if code != 0 || strings.Count(stdout, "not compared") != 2 || !strings.Contains(stdout, "(not compared: name --workspace DIR)") {
		t.Errorf("exit status %d, %q", code, stdout)
	}
}

func TestEveryChangeIsToldWithItsReason(t *testing.T) {
	b := newAttestedRun(t)
	other := newAttestedRun(t)
	record, err := os.ReadFile(b.record)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(record); i += 7 { // each would take a minute
		changed := bytes.Clone(record)
		changed[i] ^= 1
		clitest.Plant(t, b.record, string(changed), 0o600)
		if code, _, stderr := b.verify(); code != 1 || !strings.HasPrefix(stderr, "paddock: "+b.sealed+": "+b.record+": ") {
			t.Fatalf("byte %d of the record, %q: exit status %d, %q", i, record[i], code, stderr)
		}
	}
	clitest.Plant(t, b.record, string(record), 0o600)
	for _, row := range []struct {
		name string
		args []string
		want string
	}{
		{"another record of the same user", []string{other.record, "--attestation", b.sealed, "--key", keyFile(other)}, "SHA256:"},
		{"another workspace", []string{b.record, "--attestation", b.sealed, "--workspace", b.dir}, "the workspace has the digest "},
		{"another commit", []string{b.record, "--attestation", b.sealed, "--commit", strings.Replace(commit, "5", "4", 1)}, "it is not about the commit 4d1c9e0f"},
		{"another key", []string{b.record, "--attestation", b.sealed, "--attestation-key", keyFile(other)}, "and not with SHA256:"},
	} {
		if code, _, stderr := b.run(append([]string{"audit", "verify"}, row.args...)...); code != 1 || !strings.Contains(stderr, row.want) {
			t.Errorf("%s: exit status %d, %q, want %q", row.name, code, stderr, row.want)
		}
	}
	clitest.Plant(t, filepath.Join(b.workspace, "a/b"), "hellO", 0o644)
	code, stdout, stderr := b.verify("--json")
	if code != 1 || stderr != "" || !strings.Contains(stdout, `"state": "wrong"`) || !strings.Contains(stdout, "files were changed") {
		t.Errorf("a changed file: exit status %d, %q, %q", code, stdout, stderr)
	}
	clitest.Plant(t, filepath.Join(b.workspace, "a/b"), "hello", 0o644)
	data, err := os.ReadFile(b.sealed)
	if err != nil {
		t.Fatal(err)
	}
	clitest.Plant(t, b.sealed, strings.Replace(string(data), `"sig":"`, `"sig": "`, 1), 0o600)
	if code, _, stderr := b.verify(); code != 1 || !strings.Contains(stderr, "it was changed or formatted") {
		t.Errorf("a formatted envelope: exit status %d, %q", code, stderr)
	}
}

// keyFile makes a file with the public key of a run.
func keyFile(b *attestedRun) string {
	name := filepath.Join(b.dir, "public.pem")
	clitest.Plant(b.t, name, b.must("audit", "key"), 0o600)
	return name
}

// A run that one user attests as another run differs in its head.
func TestAnotherRunOfTheSameUserIsNotTheAttestedOne(t *testing.T) {
	b := newAttestedRun(t)
	second := filepath.Join(b.dir, "second")
	b.must("run", "--audit", second, "--", "true")
	if code, _, stderr := b.run("audit", "verify", second, "--attestation", b.sealed); code != 1 || !strings.Contains(stderr, "it is another record, or its end was cut off") {
		t.Errorf("exit status %d, %q", code, stderr)
	}
}

func TestAKeyOfOpenSSHSignsAnAttestation(t *testing.T) {
	keygen, err := exec.LookPath("ssh-keygen")
	if err != nil {
		t.Skip("there is no ssh-keygen here")
	}
	name := filepath.Join(t.TempDir(), "id")
	if out, err := exec.Command(keygen, "-q", "-t", "ed25519", "-N", "", "-C", "me@work", "-f", name).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	b := newAttestedRun(t, "--key", name)
	if code, _, stderr := b.verify("--attestation-key", name+".pub"); code != 0 {
		t.Errorf("exit status %d, %q", code, stderr)
	}
	if code, _, stderr := b.verify(); code != 1 || !strings.Contains(stderr, "and not with SHA256:") {
		t.Errorf("with the user's own key: exit status %d, %q", code, stderr)
	}
	// ssh-keygen prints the ID that the envelope has.
	out, err := exec.Command(keygen, "-l", "-f", name+".pub").Output()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(b.sealed)
	if id := strings.Fields(string(out))[1]; err != nil || !strings.Contains(string(data), `"keyid":"`+id+`"`) {
		t.Errorf("%s does not name %s: %v", data, id, err)
	}
}

// The server goes on while its record is attested, and afterwards.
func TestASandboxOfAServerIsAttestedFromSegments(t *testing.T) {
	b := &attestedRun{t: t, dir: t.TempDir()}
	b.record, b.workspace, b.sealed = filepath.Join(b.dir, "records"), filepath.Join(b.dir, "work"), filepath.Join(b.dir, "run.dsse")
	clitest.Plant(t, filepath.Join(b.workspace, "a"), "hello", 0o644)
	if err := os.Mkdir(b.record, 0o700); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(b.record)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	key, err := chain.MakeKey(filepath.Join(b.dir, ".data", "audit"))
	if err != nil {
		t.Fatal(err)
	}
	w, err := segment.NewWriter(segment.Options{Dir: root, Key: key, Size: 300})
	if err != nil {
		t.Fatal(err)
	}
	write := func(events ...audit.Event) {
		t.Helper()
		for _, e := range events {
			line, err := audit.Line(e)
			if err == nil {
				_, err = w.Write(line)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Seal(); err != nil {
			t.Fatal(err)
		}
	}
	begun := func(id string) audit.Event {
		return audit.StartOf(paddock.Status{ID: paddock.ID(id), Tier: paddock.Jail, Enforced: []paddock.Finding{{Control: paddock.ControlSeccomp, Strength: paddock.Full}}},
			paddock.Spec{}, audit.Build{Version: "v1", Digest: "sha256:" + strings.Repeat("d", 64)})
	}
	did := func(id, what string) audit.Event {
		return audit.Event{Sandbox: id, Kind: audit.Did, Action: &audit.Action{Who: "k", What: what, Result: "ok"}}
	}
	write(begun("one"), did("one", "process.start"))
	write(begun("two"), did("one", "process.start"), did("two", "process.start"))
	attest := func(more ...string) (int, string, string) {
		return b.run(append([]string{"audit", "attest", b.record, "--workspace", b.workspace}, more...)...)
	}
	if code, _, stderr := attest(); code != 125 || !strings.Contains(stderr, "more than one sandbox: one, two") || !strings.Contains(stderr, "hint: --sandbox ID names one") {
		t.Errorf("exit status %d, %q", code, stderr)
	}
	code, stdout, stderr := attest("--sandbox", "one")
	if code != 0 {
		t.Fatalf("exit status %d, %q", code, stderr)
	}
	clitest.Plant(t, b.sealed, stdout, 0o600)
	verify := func() (int, string, string) {
		return b.run("audit", "verify", b.record, "--attestation", b.sealed, "--workspace", b.workspace, "--json")
	}
	write(did("one", "process.start"), did("one", "sandbox.remove"))
	write(did("two", "sandbox.remove"))
	again := begun("two")
	again.Time, again.Start.Tenant = time.Unix(200, 1), "acme"
	write(again)
	const start = "1970-01-01T00:03:20.000000001Z"
	code, _, stderr = attest("--sandbox", "two")
	if code != 125 || !strings.Contains(stderr, "the ID two was used for 2 sandboxes") || !strings.Contains(stderr, start+" for the tenant acme") || !strings.Contains(stderr, "--started TIME") {
		t.Errorf("exit status %d, %q", code, stderr)
	}
	if code, stdout, stderr := attest("--sandbox", "two", "--started", start); code != 0 || stdout == "" {
		t.Errorf("exit status %d, %q", code, stderr)
	}
	if code, _, stderr := attest("--sandbox", "two", "--started", "yesterday"); code != 125 || !strings.Contains(stderr, "it is no time") {
		t.Errorf("exit status %d, %q", code, stderr)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr = verify()
	if code != 0 || !strings.Contains(stdout, `"commands": 2,`) || !strings.Contains(stdout, `"id": "one",`) || strings.Contains(stdout, `"ended"`) {
		t.Errorf("exit status %d, %q, %q", code, stdout, stderr)
	}
	files, err := filepath.Glob(filepath.Join(b.record, "*.jsonl"))
	if err != nil || len(files) < 3 {
		t.Fatalf("%v, %v", files, err)
	}
	data, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	clitest.Plant(t, files[0], strings.Replace(string(data), `"tier":"jail"`, `"tier":"Jail"`, 1), 0o600)
	if code, stdout, _ := verify(); code != 1 || !strings.Contains(stdout, "the record is wrong: "+filepath.Base(files[0])) {
		t.Errorf("a changed segment: exit status %d, %q", code, stdout)
	}
	clitest.Plant(t, files[0], string(data), 0o600)
	for _, name := range files[1:] { // all that came later, with the attested head
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	if code, stdout, _ := verify(); code != 1 || !strings.Contains(stdout, "the record has no head at line") {
		t.Errorf("a record that was cut off: exit status %d, %q", code, stdout)
	}
}

func TestWhatCannotBeAttestedIsRefusedWithTheReason(t *testing.T) {
	b := newAttestedRun(t)
	record, err := os.ReadFile(b.record)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.SplitAfter(record, []byte("\n"))
	open := filepath.Join(b.dir, "open")
	clitest.Plant(t, open, string(bytes.Join(lines[:3], nil)), 0o600)
	changed := filepath.Join(b.dir, "changed")
	clitest.Plant(t, changed, strings.Replace(string(record), "fake-1", "fake-2", 1), 0o600)
	outside := filepath.Join(b.dir, "fifo")
	for _, row := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"attest", b.record}, 125, "there is nothing to attest"},
		{[]string{"attest", open, "--commit", commit}, 125, "it has no closing head"},
		{[]string{"attest", changed, "--commit", commit}, 1, "its hash does not follow"},
		{[]string{"attest", b.record, "--commit", commit, "--sandbox", "other"}, 125, `how the sandbox "other" began`},
		{[]string{"attest", b.record, "--commit", "HEAD~1", "--workspace", b.workspace}, 125, "hint: name the whole digest"},
		{[]string{"attest", b.record, "--workspace", outside}, 125, "--workspace " + outside},
		{[]string{"attest", b.record, "--commit", commit, "--key", b.record}, 125, "no private key in PEM"},
		{[]string{"verify", "--attestation", b.sealed}, 125, "nothing to compare the attestation with"},
		{[]string{"verify", b.record, b.record, "--attestation", b.sealed}, 125, "got 2"},
		{[]string{"verify", b.record, "--workspace", b.workspace}, 125, "hint: add --attestation FILE"},
		{[]string{"verify", b.record, "--attestation", b.sealed, "--head", "1:" + strings.Repeat("0", 64)}, 125, "both name a head"},
		{[]string{"verify", b.record, "--attestation", filepath.Join(b.dir, "none")}, 125, "there is no such file"},
		{[]string{"verify"}, 125, "takes one FILE|DIR|URL"},
	} {
		code, stdout, stderr := b.run(append([]string{"audit"}, row.args...)...)
		if code != row.code || !strings.Contains(stderr, row.want) || stdout != "" {
			t.Errorf("%q: exit status %d, %q, %q, want %q", row.args, code, stdout, stderr, row.want)
		}
	}
}

func TestTheManifestIsWhatTheAttestationIsAbout(t *testing.T) {
	b := newAttestedRun(t)
	if err := os.Chmod(filepath.Join(b.workspace, "a"), 0o755); err != nil { // whatever the umask is
		t.Fatal(err)
	}
	out := b.must("audit", "manifest", b.workspace)
	if !strings.HasPrefix(out, "d 755 - a\x00f 644 2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824 a/b\x00") {
		t.Errorf("%q", out)
	}
}
