package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/server/api"
)

func TestAStreamHasTheTypeThatItsClientAccepts(t *testing.T) {
	tr := newTrial(t)
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"a"}`)
	for _, row := range []struct {
		accept       string
		process, dir string
	}{
		{"", api.FrameType, api.LineType}, // what clients of earlier versions send
		{api.FrameType + ", " + api.LineType, api.FrameType, api.LineType},
		{"*/*", api.EventType, api.EventType},
		{"text/event-stream", api.EventType, api.EventType},
		{"application/json", api.EventType, api.EventType},
		{"application/x-ndjson", api.LineType, api.LineType},
		{"text/event-stream;q=0.5, application/x-ndjson", api.LineType, api.LineType},
		{"application/x-ndjson;q=0, */*", api.EventType, api.EventType},
		{";;;, application/x-ndjson;q=x", api.EventType, api.EventType},
	} {
		var header []string
		if row.accept != "" {
			header = []string{"Accept", row.accept}
		}
		for path, want := range map[string]string{"POST /v1/sandboxes/a/processes": row.process, "GET /v1/sandboxes/a/files/list?path=/": row.dir} {
			method, path, _ := strings.Cut(path, " ")
			body := ""
			if method == "POST" {
				body = `{"args":["echo","hi"]}`
			}
			res, data := tr.ask(method, path, body, header...)
			if got := res.Header.Get("Content-Type"); res.StatusCode != 200 || got != want {
				t.Errorf("Accept: %s: %s %s answered %d %q, want %q: %s", row.accept, method, path, res.StatusCode, got, want, data)
			}
		}
	}
}

// outputs decodes text events, or lines.
func outputs(t *testing.T, data []byte) (list []api.Output, ids []string) {
	t.Helper()
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		if id, ok := strings.CutPrefix(line, "id: "); ok {
			ids = append(ids, id)
			continue
		}
		if line == "" {
			continue
		}
		var o api.Output
		if err := json.Unmarshal([]byte(strings.TrimPrefix(line, "data: ")), &o); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		list = append(list, o)
	}
	return list, ids
}

func TestTextEventsCarryOutputToItsEnd(t *testing.T) {
	tr := newTrial(t)
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"a"}`)
	const command = `{"args":["sh","-c","echo '<out> & more'; echo err >&2; printf '\\377\\n'; exit 3"]}`
	for _, accept := range []string{api.EventType, api.LineType} {
		data := tr.want(200, "POST", "/v1/sandboxes/a/processes", command, "Accept", accept)
		list, ids := outputs(t, data)
		var out, err strings.Builder
		next := int64(0)
		for _, o := range list {
			if o.Stdout != nil {
				out.WriteString(string(*o.Stdout))
			}
			if o.Stderr != nil {
				err.WriteString(string(*o.Stderr))
			}
			if o.Next != 0 {
				next = o.Next
			}
		}
		if out.String() != "<out> & more\n\xff\n" || err.String() != "err\n" {
			t.Errorf("%s: %q and %q in %s", accept, out.String(), err.String(), data)
		}
		if list[0].Begin == nil || list[len(list)-1].Exit == nil || list[len(list)-1].Exit.Code != 3 {
			t.Errorf("%s: %s", accept, data)
		}
		if next != int64(out.Len()+err.Len()) {
			t.Errorf("%s: the last offset is %d", accept, next)
		}
		if accept == api.EventType && (len(ids) == 0 || ids[len(ids)-1] != fmt.Sprint(next)) {
			t.Errorf("the ids are %q", ids)
		}
		if !bytes.Contains(data, []byte("<out> & more")) {
			t.Errorf("%s: %s is not what a person reads", accept, data)
		}
	}
}

func TestTextEventsContinueAfterTheLastOneThatTheClientHas(t *testing.T) {
	tr := newTrial(t)
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"a"}`)
	begun := tr.want(201, "POST", "/v1/sandboxes/a/processes", `{"args":["sh","-c","printf 123456789"],"detached":true}`)
	var b api.Begun
	if err := json.Unmarshal(begun, &b); err != nil {
		t.Fatal(err)
	}
	path := fmt.Sprintf("/v1/sandboxes/a/processes/%d/output", b.PID)
	tr.want(200, "GET", path+"?detached=true", "", "Accept", "*/*")
	list, _ := outputs(t, tr.want(200, "GET", path, "", "Accept", "*/*", api.EventHeader, "4"))
	if len(list) != 3 || list[0].Begin.Offset != 4 || string(*list[1].Stdout) != "56789" || list[1].Next != 9 {
		t.Errorf("%+v", list)
	}
	tr.want(400, "GET", path, "", api.EventHeader, "none")
}

func TestACharacterIsNotCut(t *testing.T) {
	piecesOf := func(list ...output) []api.Output {
		w := httptest.NewRecorder()
		q := &request{Request: httptest.NewRequest("GET", "/", nil), w: &recorder{ResponseWriter: w}}
		x := &texts{lines: q.linesAs(api.LineType)}
		for _, o := range list { // each comes by itself
			if err := x.output([]output{o}); err != nil {
				t.Fatal(err)
			}
		}
		if err := x.alive(); err != nil {
			t.Fatal(err)
		}
		got, _ := outputs(t, w.Body.Bytes())
		return got[:len(got)-1]
	}
	long := strings.Repeat("€", 3*textPart)
	whole := ""
	for _, o := range piecesOf(output{data: []byte(long)}) {
		if whole += string(*o.Stdout); len(*o.Stdout) > textPart || o.Next != int64(len(whole)) {
			t.Errorf("a line has %d bytes, to %d of %d", len(*o.Stdout), o.Next, len(whole))
		}
	}
	if whole != long {
		t.Errorf("%d bytes came of %d, or others", len(whole), len(long))
	}
	text := []byte("a€😀z")
	for cut := range len(text) + 1 {
		got := piecesOf(output{data: text[:cut]}, output{data: text[cut:]})
		all := ""
		for _, o := range got {
			all += string(*o.Stdout)
			if strings.ContainsRune(string(*o.Stdout), '\uFFFD') {
				t.Errorf("cut at %d: %q", cut, *o.Stdout)
			}
		}
		if all != string(text) || got[len(got)-1].Next != int64(len(text)) {
			t.Errorf("cut at %d: %q", cut, all)
		}
	}
	got := piecesOf(output{data: []byte("\xe2\x82")}, output{data: []byte("e"), stderr: true}, output{data: []byte("\xac")})
	if len(got) != 3 || string(*got[0].Stdout) != "\xe2\x82" || string(*got[1].Stderr) != "e" || string(*got[2].Stdout) != "\xac" || got[2].Next != 4 {
		t.Errorf("%+v", got)
	}
}

func TestErrorsHaveNoWordsOfGo(t *testing.T) {
	tr := newTrial(t)
	tr.want(201, "POST", "/v1/sandboxes", `{"id":"a"}`)
	bodies := []string{
		``, `{`, `[]`, `"x"`, `1`, `{"x":1}`, `{"tier":1}`, `{"limits":{"memory":"1G"}}`, `{"limits":{"cpus":"2"}}`, `{"limits":[]}`, `{"mounts":{}}`,
		`{"args":"ls"}`, `{"args":[1]}`, `{"args":["ls"],"timeout":"5s"}`, `{"args":["ls"],"terminal":{"rows":-1}}`, `{"args":["ls"],"dir":{"base64":"%"}}`,
		`{"args":["ls"],"dir":{"base64":1}}`, `{"args":["ls"],"env":{"A":1}}`, `{"signal":"TERM"}`, `{"rows":70000}`, `{"by":"1h"}`, `{"deadline":"tomorrow"}`, `{"deadline":1}`,
		`{"terms":{"deadline":"tomorrow"}}`, `{"code":1}`, `{"memory":"yes"}`, `{"spec":[]}`, `{"scopes":"read"}`, `{"expires":"soon","scopes":[]}`, `{"lifetime":"1h"}`,
		`{"policy":{"network":{"rules":[{"host":"x","ports":["http"]}]}}}`, `{"policy":{"network":{"mode":1}}}`, `{"name":"x"} trailing`, "\xff", `{"labels":{"a":null,"b":[]}}`,
	}
	words := []string{"json:", "unmarshal", "struct", "Go ", "int64", "int32", "uint16", "float64", "[]uint8", "[]string", "map[", "time.", "parsing time", "strconv", "EOF", "base64.", "api.", "paddock.", "interface {}"}
	for _, r := range tr.s.table() {
		method, path, _ := strings.Cut(r.pattern, " ")
		if strings.HasPrefix(path, "/v1/leases") || strings.HasSuffix(path, "/watch") || strings.HasSuffix(path, "/events") {
			continue // they answer for as long as they are open
		}
		path = strings.NewReplacer("{id}", "a", "{pid}", "1", "{key}", "k", "{token}", strings.Repeat("t", 20), "{snapshot}", "s", "{context}", "c", "{port}", "80").Replace(path)
		asked := []string{path}
		if method == "GET" || method == "PUT" {
			asked = append(asked, path+"?limit=x&after=x&offset=x&from=x&length=x&depth=x&since=x&until=x&mode=x&all=x&each=x&recursive=x&parents=x&label=x&cursor=x&path=x&detached=x")
		}
		for _, path := range asked {
			for _, body := range bodies {
				if method == "GET" || method == "DELETE" {
					body = ""
				}
				res, data := tr.ask(method, path, body)
				if res.StatusCode < 400 {
					if strings.HasSuffix(r.pattern, "/v1/sandboxes/{id}") && method == "DELETE" {
						tr.want(201, "POST", "/v1/sandboxes", `{"id":"a"}`)
					}
					continue
				}
				for _, word := range words {
					if bytes.Contains(data, []byte(word)) {
						t.Errorf("%s %s with %s: the answer has %q: %s", method, path, body, word, data)
					}
				}
				if body == "" && method != "POST" && method != "PATCH" {
					break
				}
			}
		}
	}
}
