package audit

import (
	"encoding/json"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

func TestTheManualTellsWhatLinesAre(t *testing.T) {
	data, err := os.ReadFile("../../docs/security/audit.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	_, examples, _ := strings.Cut(page, "\n```json\n")
	examples, _, found := strings.Cut(examples, "```")
	if !found {
		t.Fatal("there are no examples")
	}
	for line := range strings.Lines(examples) {
		var e Event
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Errorf("%s: %v", line, err)
			continue
		}
		if again, err := Line(e); err != nil || string(again) != line {
			t.Errorf("the manual has\n%s, and the event is %s", line, again)
		}
	}
	before := 0
	for _, key := range keys(reflect.TypeFor[Event](), "") {
		at := strings.Index(page, "\n| `"+key+"` |")
		if at < before {
			t.Errorf("%s is not in the table, or not in its place", key)
		}
		before = at
	}
	for _, k := range append(paddock.AuditKinds(), Did, Started, Stepped, Lost) {
		if !strings.Contains(page, "`"+string(k)+"`") {
			t.Errorf("the kind %s is not told", k)
		}
	}
}

// keys lists the keys of a line, in order.
func keys(of reflect.Type, above string) []string {
	var list []string
	for i := range of.NumField() {
		f := of.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		name = above + name
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct && inner != reflect.TypeFor[time.Time]() {
			list = append(list, keys(inner, name+".")...)
		} else {
			list = append(list, name)
		}
	}
	return list
}
