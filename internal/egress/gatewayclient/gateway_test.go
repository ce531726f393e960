package gatewayclient

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/audit"
)

func TestRulesThatMakeNoSenseStartNothing(t *testing.T) {
	_, err := New(Options{Policy: paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{{Host: "a b"}}}})
	if !errors.Is(err, paddock.Invalid) || !strings.Contains(err.Error(), "rules[0]") {
		t.Errorf("%v", err)
	}
}

func TestACertificateIsMadeOnlyWhereTLSIsLookedInto(t *testing.T) {
	for _, row := range []struct {
		rule paddock.NetworkRule
		want bool
	}{{paddock.NetworkRule{Host: "example.com"}, false}, {paddock.NetworkRule{Host: "example.com", Methods: []string{"GET"}}, true}} {
		w, err := New(Options{Policy: paddock.NetworkPolicy{Mode: paddock.NetworkList, Rules: []paddock.NetworkRule{row.rule}}})
		if err != nil {
			t.Fatal(err)
		}
		if got := len(w.Certificate()) > 0; got != row.want {
			t.Errorf("%+v: a certificate: %v", row.rule, got)
		}
	}
}

type sink []audit.Event

func (s *sink) Record(e audit.Event) { *s = append(*s, e) }

func TestWhatIsDecidedIsRecordedAndWhatIsRefusedIsListed(t *testing.T) {
	var events sink
	w, err := New(Options{Sandbox: "s", Policy: paddock.NetworkPolicy{Mode: paddock.NetworkList}, Audit: &events})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Unix(5, 0)
	denied := Event{
		Time: at, Sandbox: "s", Kind: KindHTTP, Host: "a.example", Address: "192.0.2.1:443", Port: 443, Method: "GET", Path: "/x", Rule: -1,
		Verdict: VerdictDeny, Reason: "no rule allows it", Hint: "--allow a.example", Sent: 1, Received: 2, Duration: 3, Secrets: []string{"KEY"}, Count: 4,
	}
	w.event(denied)
	w.event(denied)
	w.event(Event{Time: at, Sandbox: "s", Kind: KindTCP, Host: "b.example", Verdict: VerdictAllow})
	want := audit.Event{Time: at, Sandbox: "s", Kind: audit.Network, Network: &audit.Flow{
		Protocol: "http", Host: "a.example", Address: "192.0.2.1:443", Port: 443, Method: "GET", Path: "/x", Rule: -1,
		Verdict: "deny", Reason: "no rule allows it", Sent: 1, Received: 2, Duration: 3, Secrets: []string{"KEY"}, Count: 4,
	}}
	if len(events) != 3 || !reflect.DeepEqual(events[0], want) {
		t.Errorf("recorded %+v", events)
	}
	list := w.State().Refused
	if len(list) != 1 || list[0].Count != 8 || list[0].Remedy != "--allow a.example" || list[0].Rule != "no rule allows it" {
		t.Errorf("listed %+v", list)
	}
	if f := w.State().Finding("by rules"); f.How != "by rules" {
		t.Errorf("found %+v", f)
	}
	w.lost(errors.New("it was killed"))
	if f := w.State().Finding("by rules"); f.How != "none any more: it was killed" {
		t.Errorf("found %+v", f)
	}
	if list := w.State().Refused; len(list) != 2 || !strings.Contains(list[1].Rule, "it was killed") || len(events) != 4 {
		t.Errorf("listed %+v, recorded %+v", list, events)
	}
}

func TestTheNewestRefusalsAreKeptAndFitIntoAPacket(t *testing.T) {
	var r refusals
	begin := time.Now()
	for i := range maxRefused + 500 {
		r.add(paddock.Refusal{Time: begin.Add(time.Duration(i)), What: "connect", Target: fmt.Sprint(i), Rule: strings.Repeat("r", 200), Count: 1})
	}
	r.add(paddock.Refusal{Time: begin.Add(time.Hour), What: "connect", Target: "1400", Rule: strings.Repeat("r", 200), Count: 2})
	list := r.list()
	data, err := json.Marshal(list)
	last := list[len(list)-1]
	if err != nil || len(r.order) != maxRefused || len(r.known) != maxRefused || len(data) > listMax+1 || len(list) < 200 || last.Target != "1400" || last.Count != 3 {
		t.Errorf("%d of %d are kept, %d bytes; the last is %+v", len(list), len(r.order), len(data), last)
	}
	var angles refusals
	for i := range maxRefused {
		angles.add(paddock.Refusal{Time: begin, What: "request", Target: fmt.Sprint(i, strings.Repeat("<", 1000)), Count: 1})
	}
	if data, err = json.Marshal(angles.list()); err != nil || len(data) > listMax+1 {
		t.Errorf("a list of %d bytes, %v", len(data), err)
	}
}

func TestListsTogetherKeepTheNewest(t *testing.T) {
	var list []paddock.Refusal
	for i := range maxRefused {
		list = append(list, paddock.Refusal{Time: time.Unix(int64(i), 0), Target: fmt.Sprint(i)})
	}
	if both := JoinRefusals(list, []paddock.Refusal{{Time: time.Unix(1, 1), Target: "other"}}); len(both) != maxRefused || both[0].Target != "1" || both[1].Target != "other" {
		t.Errorf("%d together, the second is %q", len(both), both[1].Target)
	}
}
