package monitor

import (
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestAnAnswerIsReadStrictly(t *testing.T) {
	for _, good := range []string{
		`{"verdict":"allow"}`, ` {"verdict":"deny","reason":"no","score":0.5}` + "\n", `{"score":1,"verdict":"pause","reason":"x"}`, `{"verdict":"ask","reason":"?"}`,
	} {
		if _, err := parseAnswer([]byte(good)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{
		``, `null`, `[]`, `"allow"`, `allow`, `{}`, `{"verdict":"ALLOW"}`, `{"verdict":"allowed"}`, `{"Verdict":"allow"}`, `{"verdict":"allow","verdict":"deny","reason":"x"}`,
		`{"verdict":"deny"}`, `{"verdict":"deny","reason":""}`, `{"verdict":"allow","score":2}`, `{"verdict":"allow","score":-0.1}`, `{"verdict":"allow","score":"0"}`, `{"verdict":"allow","score":null}`,
		`{"verdict":"allow","note":"x"}`, `{"verdict":"allow"}{"verdict":"deny","reason":"x"}`, `{"verdict":"allow"} and so on`, `{"verdict":["allow"]}`, `{"verdict":null}`,
		"{\"verdict\":\"deny\",\"reason\":\"\xff\"}", "```json\n{\"verdict\":\"allow\"}\n```", `{"verdict":"allow"`, strings.Repeat(" ", maxAnswer) + `{"verdict":"allow"}`,
	} {
		if a, err := parseAnswer([]byte(bad)); paddock.KindOf(err) != paddock.Invalid || a != (Answer{}) {
			t.Errorf("%.60q gave %+v, %v", bad, a, err)
		}
	}
}

func FuzzAnAnswerIsAVerdictOrAnError(f *testing.F) {
	f.Add([]byte(`{"verdict":"allow","reason":"x","score":0.1}`))
	f.Add([]byte(`{"verdict":"pause","reason":"\ud800"}`))
	f.Add([]byte(`{"verdict":"allow","verdict":null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		a, err := parseAnswer(data)
		switch {
		case err != nil && a != (Answer{}):
			t.Errorf("an answer with an error: %+v", a)
		case err == nil && (a.Verdict.rank() > Pause.rank() || a.Score < 0 || a.Score > 1 || a.Verdict != Allow && a.Reason == ""):
			t.Errorf("%q gave %+v", data, a)
		case err == nil && !strings.Contains(string(data), `"verdict"`) && !strings.Contains(string(data), `\u`):
			t.Errorf("%q gave %+v", data, a)
		}
	})
}
