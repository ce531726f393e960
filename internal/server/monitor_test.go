package server

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/server/api"
	"github.com/paddock-sandbox/paddock/internal/step/steptest"
)

func TestQuestionsOfAMonitorAreAnswered(t *testing.T) {
	var answers *steptest.Answers
	tr := newTrial(t, func(c *Caller) { c.Driver, answers = steptest.Asking(c.Driver) })
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"a","monitor":{"task":"a task","removed":3,"known":["packages.example"],"wait":60000000000}}`)
	var got api.Questions
	if err := json.Unmarshal(tr.want(200, "GET", "/v1/sandboxes/a/questions", ""), &got); err != nil || !reflect.DeepEqual(got.Questions, steptest.Asked()) {
		t.Errorf("it asks %+v, %v", got, err)
	}
	var st paddock.Status
	if err := json.Unmarshal(tr.want(200, "GET", "/v1/sandboxes/a", ""), &st); err != nil || st.Monitor == nil || st.Monitor.Open != 2 || st.Monitor.Paused != "why" {
		t.Errorf("the status says %+v, %v", st.Monitor, err)
	}
	tr.want(200, "GET", "/v1/sandboxes/a/questions?wait=true", "")
	tr.want(400, "GET", "/v1/sandboxes/a/questions?wait=1", "")
	for _, body := range []string{``, `{}`, `{"answer":""}`, `{"answer":"yes"}`, `{"answer":"Allow"}`, `{"allow":true}`, `{"answer":true}`} {
		tr.want(400, "POST", "/v1/sandboxes/a/questions/ONE", body)
	}
	tr.want(404, "POST", "/v1/sandboxes/a/questions/THREE", `{"answer":"allow"}`)
	tr.want(404, "POST", "/v1/sandboxes/b/questions/ONE", `{"answer":"allow"}`)
	if all := answers.All(); len(all) > 0 {
		t.Errorf("what was no answer reached the monitor: %q", all)
	}
	tr.want(204, "POST", "/v1/sandboxes/a/questions/ONE", `{"answer":"deny"}`)
	tr.want(404, "POST", "/v1/sandboxes/a/questions/ONE", `{"answer":"allow"}`)
	tr.want(204, "POST", "/v1/sandboxes/a/questions/TWO", `{"answer":"allow"}`)
	if all := answers.All(); !slices.Equal(all, []string{"a ONE false", "a TWO true"}) {
		t.Errorf("the answers are %q", all)
	}
	if err := json.Unmarshal(tr.want(200, "GET", "/v1/sandboxes/a/questions", ""), &got); err != nil || len(got.Questions) != 0 {
		t.Errorf("afterwards it asks %+v, %v", got, err)
	}
}

// A caller gets the built-in rules, and names nobody else as a judge: that would run, or be asked, as the server.
func TestACallerNamesNoJudge(t *testing.T) {
	tr := newTrial(t, func(c *Caller) { c.Driver, _ = steptest.Asking(c.Driver) })
	for _, m := range []string{`{"command":["/bin/true"]}`, `{"url":"https://judge.example"}`, `{"model":{"interface":"openai","name":"x"}}`, `{"rules":false}`, `"rules"`} {
		tr.want(400, "POST", "/v1/sandboxes", `{"id":"a","monitor":`+m+`}`)
	}
	tr.want(404, "GET", "/v1/sandboxes/a", "")
}

func TestASandboxWithoutAMonitorSaysSo(t *testing.T) {
	tr := newTrial(t)
	tr.want(501, "POST", "/v1/sandboxes", `{"id":"a","monitor":{}}`)
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"a"}`)
	tr.want(501, "GET", "/v1/sandboxes/a/questions", "")
	tr.want(501, "POST", "/v1/sandboxes/a/questions/ONE", `{"answer":"allow"}`)
}

func TestAForkIsJudgedAsItsOrigin(t *testing.T) {
	from := paddock.Status{Monitor: &paddock.Monitoring{Settings: paddock.Monitor{Task: "a task"}, Paused: "why"}}
	if spec := inherit(paddock.Spec{}, from, false); spec.Monitor == nil || spec.Monitor.Task != "a task" {
		t.Errorf("a fork is judged by %+v", spec.Monitor)
	}
	if spec := inherit(paddock.Spec{Monitor: &paddock.Monitor{Task: "another"}}, from, false); spec.Monitor.Task != "another" {
		t.Errorf("a fork with a monitor of its own is judged by %+v", spec.Monitor)
	}
}

func TestACallerIsToldThatAMonitorAsks(t *testing.T) {
	tr := newTrial(t)
	const name = "one" // of the trial's caller
	tr.s.Asked("another", "b")
	tr.s.Asked(name, "a")
	list, _ := tr.s.accountOf(name).news.after(0)
	if n := len(list); n != 1 || list[n-1].What != api.Asked || list[n-1].Sandbox != "a" {
		t.Errorf("the events are %+v", list)
	}
	if other, _ := tr.s.accountOf("another").news.after(0); len(other) != 1 {
		t.Errorf("another's events are %+v", other)
	}
}
