package server

import (
	"encoding/json"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/server/api"
	"github.com/paddock-sandbox/paddock/internal/step/steptest"
)

func TestStepsAreAnsweredAsTheContractSays(t *testing.T) {
	tr := newTrial(t, func(c *Caller) { c.Driver = steptest.Journaled(c.Driver) })
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"a","undo":"on"}`)
	tr.want(200, "GET", "/v1/sandboxes/a/steps", "")
	var page api.Steps
	if err := json.Unmarshal(tr.want(200, "GET", "/v1/sandboxes/a/steps?limit=2", ""), &page); err != nil || len(page.Steps) != 2 || page.Before != 20 {
		t.Errorf("the newest page is %+v, %v", page, err)
	}
	page = api.Steps{}
	if err := json.Unmarshal(tr.want(200, "GET", "/v1/sandboxes/a/steps?limit=2&before=20", ""), &page); err != nil || len(page.Steps) != 1 || page.Before != 0 {
		t.Errorf("the page before is %+v, %v", page, err)
	}
	tr.want(200, "GET", "/v1/sandboxes/a/steps/20", "")
	tr.want(404, "GET", "/v1/sandboxes/a/steps/21", "")
	tr.want(200, "GET", "/v1/sandboxes/a/steps/10/diff?to=30&path=/work&path=/b", "")
	tr.want(200, "POST", "/v1/sandboxes/a/undo", `{"steps":[10],"paths":["/work",{"base64":"L/8="}]}`)
	for _, path := range []string{"?limit=0", "?limit=501", "?limit=x", "?before=-1", "?before=x", "/0", "/x", "/-1", "/10/diff?to=x", "/99999999999999999999"} {
		tr.want(400, "GET", "/v1/sandboxes/a/steps"+path, "")
	}
	tr.want(400, "POST", "/v1/sandboxes/a/undo", `{"step":1}`)
	for _, path := range []string{"/steps", "/steps/1", "/steps/1/diff"} {
		tr.want(404, "GET", "/v1/sandboxes/nobody"+path, "")
	}
}

func TestASandboxThatRecordsNoStepsSaysSo(t *testing.T) {
	tr := newTrial(t)
	tr.want(501, "POST", "/v1/sandboxes", `{"id":"a","undo":"on"}`)
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"a"}`)
	tr.want(501, "GET", "/v1/sandboxes/a/steps", "")
	tr.want(501, "GET", "/v1/sandboxes/a/steps/1", "")
	tr.want(501, "POST", "/v1/sandboxes/a/undo", `{"to":1}`)
}

func TestTheStepsOfARemovedSandboxAreAnswered(t *testing.T) {
	tr := newTrial(t, func(c *Caller) { c.Driver = steptest.Journaled(c.Driver) })
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"a","undo":"on"}`)
	tr.want(404, "GET", "/v1/sandboxes/a/steps/21", "")
	tr.want(200, "GET", "/v1/sandboxes/a/steps", "")
	tr.want(204, "DELETE", "/v1/sandboxes/a", "")
	tr.want(404, "GET", "/v1/sandboxes/a", "")
	var page api.Steps
	if err := json.Unmarshal(tr.want(200, "GET", "/v1/sandboxes/a/steps?limit=2", ""), &page); err != nil || len(page.Steps) != 2 || page.Before != 20 {
		t.Errorf("the newest page is %+v, %v", page, err)
	}
	tr.want(200, "GET", "/v1/sandboxes/a/steps/20", "")
	tr.want(404, "GET", "/v1/sandboxes/a/steps/21", "")
	tr.want(200, "GET", "/v1/sandboxes/a/steps/10/diff?to=30", "")
	tr.want(200, "POST", "/v1/sandboxes/a/undo", `{"steps":[10]}`)
	tr.want(404, "GET", "/v1/sandboxes/b/steps", "")
	tr.want(404, "POST", "/v1/sandboxes/b/undo", `{"to":1}`)
}
