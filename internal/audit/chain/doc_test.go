package chain

import (
	"os"
	"strings"
	"testing"
)

func TestTheManualTellsWhatALogIs(t *testing.T) {
	data, err := os.ReadFile("../../../docs/security/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	_, part, _ := strings.Cut(page, "## A record that")
	_, log, found := strings.Cut(part, "\n```json\n")
	log, _, _ = strings.Cut(log, "```")
	if rep := verify(t, []byte(log), nil); !found || rep.State != Whole || rep.Events != 3 || log != string(sample(t)) {
		t.Errorf("the example is %+v", rep)
	}
	for _, s := range []State{Whole, Open, Wrong} {
		if !strings.Contains(page, "\n| `"+string(s)+"` |") {
			t.Errorf("the state %s is not told", s)
		}
	}
	for _, p := range []Problem{BadForm, BadBegin, BadKey, BadSequence, BadHash, BadSignature, BadEnd, BadHead, CutOff} {
		if !strings.Contains(page, "\n| `"+string(p)+"` |") {
			t.Errorf("the problem %s is not told", p)
		}
	}
	for _, key := range []string{"seq", "hash", "version", "log", "fingerprint", "key", "closed", "signature"} {
		if !strings.Contains(page, "\n| `"+key+"` |") {
			t.Errorf("the key %s is not told", key)
		}
	}
}
