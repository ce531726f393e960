package e2b_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func TestABuildFailsAtTheStepThatExpandsBeyondTheBound(t *testing.T) {
	b := newBench(t)
	b.close()
	b.lessor = &order{Lessor: b.d} // builds ask for a network, and the tier has none here
	b.open()
	code, v := b.ask("acme", "POST", "/v3/templates", `{"name":"x"}`)
	if code != 202 {
		t.Fatalf("%d %v", code, v)
	}
	at := "/templates/" + v["templateID"].(string) + "/builds/" + v["buildID"].(string)
	steps := `{"type":"ENV","args":["B","1"]},{"type":"ENV","args":["A","xxxxxxxxxxxxxxxx"` + strings.Repeat(`,"A","$A$A"`, 22) + `]}`
	if code, v := b.ask("acme", "POST", "/v2"+at, `{"fromTemplate":"base:sim","steps":[`+steps+`]}`); code != 202 {
		t.Fatalf("%d %v", code, v)
	}
	for { // until the build ends
		_, v = b.ask("acme", "GET", at+"/status", "")
		if status := v["status"]; status != "building" && status != "waiting" {
			break
		}
	}
	reason, _ := v["reason"].(map[string]any)
	if message, _ := reason["message"].(string); v["status"] != "error" || reason["step"] != "2" || !strings.Contains(message, "maximum of 262144 bytes") {
		t.Errorf("it ended with %v %v", v["status"], reason)
	}
	if list, err := b.d.List(t.Context()); err != nil || len(list) != 0 {
		t.Errorf("its sandbox is left: %v %v", list, err)
	}
}

// A sandbox's variables are those of its template and of the request, and a snapshot of it is
// the next template.
func TestVariablesDoNotGrowFromSnapshotToSnapshot(t *testing.T) {
	b := newBench(t)
	with := func(template, name string, size int) (int, map[string]any) {
		return b.ask("acme", "POST", "/v2/sandboxes", `{"templateID":"`+template+`","allow_internet_access":false,"envVars":{"`+name+`":"`+strings.Repeat("x", size)+`"}}`)
	}
	code, v := with("base:sim", "A", paddock.MaxEnv-10)
	if code != 201 {
		t.Fatalf("%d %v", code, v)
	}
	code, v = b.ask("acme", "POST", "/sandboxes/"+v["sandboxID"].(string)+"/snapshots", `{"name":"mine","memory":false}`)
	if code != 201 {
		t.Fatalf("%d %v", code, v)
	}
	if code, v := with("mine", "B", paddock.MaxEnv-10); code != 400 || !strings.Contains(v["message"].(string), "the maximum is 262144") {
		t.Errorf("with a second large variable: %d %v", code, v)
	}
	if code, v := with("mine", "B", 8); code != 201 {
		t.Errorf("with a small one: %d %v", code, v)
	}
}

func TestTheTagsOfATemplateHaveABound(t *testing.T) {
	b := newBench(t)
	id, _ := b.make("acme")
	if code, v := b.ask("acme", "POST", "/sandboxes/"+id+"/snapshots", `{"name":"mine:first","memory":false}`); code != 201 {
		t.Fatalf("%d %v", code, v)
	}
	tag := func(names ...string) (int, map[string]any) {
		return b.ask("acme", "POST", "/templates/tags", `{"target":"mine:first","tags":["`+strings.Join(names, `","`)+`"]}`)
	}
	names := make([]string, 100)
	for i := range 10 {
		for j := range names {
			names[j] = fmt.Sprintf("t%d", i*100+j)
		}
		if i == 9 {
			names = names[:99] // beside the first
		}
		if code, v := tag(names...); code != 201 {
			t.Fatalf("%d %v", code, v)
		}
	}
	if code, v := tag("one-more"); code != 429 {
		t.Errorf("above the bound: %d %v", code, v)
	}
	if code, v := tag("t7"); code != 201 {
		t.Errorf("one that is there: %d %v", code, v)
	}
}
