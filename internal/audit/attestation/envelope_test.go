package attestation

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/secure-systems-lab/go-securesystemslib/dsse"

	"github.com/paddock-sandbox/paddock/internal/audit/chain"
)

// keyOf makes a key that is the same in each test.
func keyOf(seed byte) (ed25519.PrivateKey, ed25519.PublicKey) {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	return key, ed25519.PublicKey(key[ed25519.PublicKeySize:])
}

func idOf(t *testing.T, key ed25519.PublicKey) string {
	t.Helper()
	id, err := KeyID(key)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func example() Statement {
	return New([]Subject{Workspace(strings.Repeat("a", 64)), Commit(strings.Repeat("b", 40))}, Predicate{
		Sandbox:  Sandbox{ID: "sb-1", Tier: "gvisor", Root: "host"},
		Controls: []Control{{"seccomp", "full"}},
		Policy:   Policy{Digest: Digest{SHA256: strings.Repeat("c", 64)}},
		Paddock:  Build{Version: "v1 <&>", Digest: Digest{SHA256: strings.Repeat("d", 64)}},
		Record:   Record{Log: strings.Repeat("e", 32), Head: chain.Point{Seq: 9, Hash: strings.Repeat("f", 64)}, Closed: true, Lines: 9, Kinds: []string{"exec"}},
		Secrets:  map[string]int64{"B": 1, "A": 2},
		Started:  time.Unix(1, 2).UTC(),
	})
}

func signed(t testing.TB, s Statement, key ed25519.PrivateKey) []byte {
	t.Helper()
	signer, err := NewSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	data, err := Sign(s, signer)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// The example is that of DSSE's own protocol.md.
func TestASignatureIsOverTheEncodingOfTheSpecification(t *testing.T) {
	if got := string(authenticated("http://example.com/HelloWorld", []byte("hello world"))); got != "DSSEv1 29 http://example.com/HelloWorld 11 hello world" {
		t.Errorf("%q", got)
	}
}

func TestAnEnvelopeHasTheStatement(t *testing.T) {
	key, public := keyOf(1)
	want := example()
	got, err := Open(signed(t, want, key), public)
	if err != nil {
		t.Fatal(err)
	}
	a, errA := json.Marshal(got)
	b, errB := json.Marshal(want)
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("got  %s\nwant %s", a, b)
	}
	want.PredicateType = FirstPredicateType
	if got, err := Open(signed(t, want, key), public); err != nil || got.PredicateType != FirstPredicateType {
		t.Errorf("of version 1: %v", err)
	}
}

func TestEveryChangedByteOfAnEnvelopeIsNoticed(t *testing.T) {
	key, public := keyOf(1)
	data := signed(t, example(), key)
	for i := range data {
		for _, bit := range []byte{0x01, 0x20, 0x80} { // 0x20 is the case of a letter
			changed := slices.Clone(data)
			changed[i] ^= bit
			if _, err := Open(changed, public); err == nil {
				t.Fatalf("byte %d, %q, can be %q", i, data[i], changed[i])
			}
		}
		if _, err := Open(slices.Delete(slices.Clone(data), i, i+1), public); err == nil {
			t.Fatalf("byte %d, %q, can be gone", i, data[i])
		}
		if _, err := Open(slices.Insert(slices.Clone(data), i, ' '), public); err == nil {
			t.Fatalf("there can be a space at byte %d", i)
		}
	}
	for i := range public {
		other := slices.Clone(public)
		other[i] ^= 1
		if _, err := Open(data, other); err == nil {
			t.Fatalf("byte %d of the key can be another", i)
		}
	}
}

func TestAnEnvelopeOfAnotherKindIsRefusedWithTheReason(t *testing.T) {
	key, public := keyOf(1)
	other, _ := keyOf(2)
	wrap := func(payloadType, payload string) []byte {
		pae := authenticated(payloadType, []byte(payload))
		data, err := envelope{payloadType, base64.StdEncoding.EncodeToString([]byte(payload)), []signature{{
			idOf(t, public), base64.StdEncoding.EncodeToString(ed25519.Sign(key, pae)),
		}}}.encode()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	good, err := example().encode()
	if err != nil {
		t.Fatal(err)
	}
	first := example()
	first.PredicateType, first.Predicate.Counts.Events = FirstPredicateType, map[string]int64{"exec": 1}
	nothing := example()
	nothing.Subject = []Subject{}
	for _, row := range []struct {
		name string
		data []byte
		want string
	}{
		{"nothing", nil, "no DSSE envelope"},
		{"a list", []byte("[]\n"), "no DSSE envelope"},
		{"another payload", wrap("application/json", "{}"), "of the type \"application/json\""},
		{"no signature", []byte(`{"payloadType":"application/vnd.in-toto+json","payload":"","signatures":[]}` + "\n"), "0 signatures"},
		{"another key", signed(t, example(), other), "and not with SHA256:"},
		{"no statement", wrap(PayloadType, "{}"), "no in-toto Statement"},
		{"another predicate", wrap(PayloadType, `{"_type":"https://in-toto.io/Statement/v1","predicateType":"https://slsa.dev/provenance/v1"}`), "predicate is of the type"},
		{"a field more", wrap(PayloadType, strings.Replace(string(good), `{"_type"`, `{"more":1,"_type"`, 1)), `unknown field "more"`},
		{"a field twice", wrap(PayloadType, strings.Replace(string(good), `{"_type"`, `{"_type":"x","_type"`, 1)), "not written as"},
		{"a field in capitals", wrap(PayloadType, strings.Replace(string(good), `"sandbox"`, `"SANDBOX"`, 1)), "not written as"},
		{"something behind it", wrap(PayloadType, string(good)+" {}"), "no in-toto Statement"},
		{"a field of a later version", signed(t, first, key), "has fields of version 2"},
		{"no subject", signed(t, nothing, key), "about nothing"},
		{"too large", bytes.Repeat([]byte("x"), MaxEnvelope+1), "larger than any attestation"},
	} {
		if _, err := Open(row.data, public); err == nil || !strings.Contains(err.Error(), row.want) {
			t.Errorf("%s: %v, want %q", row.name, err, row.want)
		}
	}
}

// A judge verifies as a program of others does that has the public key.
type judge struct{ key ed25519.PublicKey }

func (j judge) Verify(_ context.Context, data, sig []byte) error {
	if !ed25519.Verify(j.key, data, sig) {
		return errors.New("not signed by this key")
	}
	return nil
}
func (judge) KeyID() (string, error)     { return "", nil } // as in cosign, which has only the key
func (j judge) Public() crypto.PublicKey { return j.key }

// cosign verifies envelopes with this library.
func TestTheLibraryOfOtherVerifiersAcceptsAnEnvelope(t *testing.T) {
	key, public := keyOf(1)
	data := signed(t, example(), key)
	var e dsse.Envelope
	if err := json.Unmarshal(data, &e); err != nil {
		t.Fatal(err)
	}
	verify := func(public ed25519.PublicKey) error {
		v, err := dsse.NewEnvelopeVerifier(judge{public})
		if err != nil {
			t.Fatal(err)
		}
		_, err = v.Verify(t.Context(), &e)
		return err
	}
	if err := verify(public); err != nil {
		t.Error(err)
	}
	if _, other := keyOf(2); verify(other) == nil {
		t.Error("it accepts the envelope with another key")
	}
}

// What it signs, Open reads: the two agree about the encoding both ways.
func TestAnEnvelopeOfTheLibraryOfOthersIsRead(t *testing.T) {
	key, public := keyOf(1)
	payload, err := example().encode()
	if err != nil {
		t.Fatal(err)
	}
	s, err := dsse.NewEnvelopeSigner(scribe{judge{public}, key})
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.SignPayload(t.Context(), PayloadType, payload)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Open(append(data, '\n'), public); err != nil {
		t.Errorf("%s: %v", data, err)
	}
}

type scribe struct {
	judge
	private ed25519.PrivateKey
}

func (s scribe) Sign(_ context.Context, data []byte) ([]byte, error) {
	return ed25519.Sign(s.private, data), nil
}
func (s scribe) KeyID() (string, error) { return KeyID(s.key) }

// Envelopes are read before it is known who wrote them.
func FuzzAnEnvelope(f *testing.F) {
	key, public := keyOf(1)
	data := signed(f, example(), key)
	f.Add(data)
	f.Add(bytes.ToUpper(data))
	f.Add([]byte(`{"payloadType":"application/vnd.in-toto+json","payload":"e30=","signatures":[{"keyid":"","sig":""}]}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		if _, err := Open(in, public); (err == nil) != bytes.Equal(in, data) {
			t.Errorf("%q: %v", in, err)
		}
		_, _, _, _ = parse(in)
	})
}

func FuzzAStatement(f *testing.F) {
	good, err := example().encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"_type":"https://in-toto.io/Statement/v1","subject":[{}],"predicateType":"` + PredicateType + `","predicate":{"started":"0000-00-00T00:00:00Z"}}`))
	f.Fuzz(func(t *testing.T, in []byte) {
		s, err := decode(in)
		if err != nil {
			return
		}
		if again, err := s.encode(); err != nil || !bytes.Equal(again, in) {
			t.Errorf("%q is read, and written as %q, %v", in, again, err)
		}
	})
}
