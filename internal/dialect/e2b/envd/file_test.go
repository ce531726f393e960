package envd

import (
	"fmt"
	"net/url"
	"reflect"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock/internal/dialect/e2b"
)

// put writes a file through the API.
func (tr *trial) put(name, text string, header ...string) {
	tr.t.Helper()
	code, body, _ := tr.ask("POST", "/files?path="+url.QueryEscape(name), text, append([]string{"Content-Type", "application/octet-stream"}, header...)...)
	if code != 200 {
		tr.t.Fatalf("write %s: %d %s", name, code, body)
	}
}

// entry gives what a call tells of a file.
func (tr *trial) entry(method, body string) map[string]any {
	tr.t.Helper()
	e, ok := tr.must("filesystem.Filesystem/"+method, body)["entry"].(map[string]any)
	if !ok {
		tr.t.Fatalf("%s %s: no entry", method, body)
	}
	return e
}

// without gives an entry without what differs at each run.
func without(m map[string]any, names ...string) map[string]any {
	for _, n := range append(names, "modifiedTime") {
		delete(m, n)
	}
	return m
}

func TestAFileIsDescribed(t *testing.T) {
	tr := newTrial(t)
	tr.put("a.txt", "text")
	got := tr.entry("Stat", `{"path":"a.txt"}`)
	if at, ok := got["modifiedTime"].(string); !ok || !strings.HasPrefix(at, "20") || !strings.HasSuffix(at, "Z") {
		t.Errorf("time: %v", got["modifiedTime"])
	}
	want := map[string]any{
		"name": "a.txt", "type": "FILE_TYPE_FILE", "path": "/home/user/a.txt", "size": "4", "mode": 420.0,
		"permissions": "-rw-r--r--", "owner": "user", "group": "user",
	}
	if without(got); !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
	dir := without(tr.entry("MakeDir", `{"path":"~/d/e"}`), "size")
	if want := map[string]any{
		"name": "e", "type": "FILE_TYPE_DIRECTORY", "path": "/home/user/d/e", "mode": 493.0,
		"permissions": "drwxr-xr-x", "owner": "user", "group": "user",
	}; !reflect.DeepEqual(dir, want) {
		t.Errorf("%v", dir)
	}
}

func TestALinkIsDescribedByWhatItLeadsTo(t *testing.T) {
	tr := newTrial(t)
	tr.put("d/a.txt", "text")
	tr.run("ln -s d/a.txt one; ln -s ~/one two; ln -s d dir; ln -s dir/../dir/a.txt three; ln -s gone dangling; ln -s loop2 loop1; ln -s loop1 loop2")
	for name, want := range map[string][3]string{
		"one":        {"FILE_TYPE_FILE", "/home/user/d/a.txt", "one"},
		"two":        {"FILE_TYPE_FILE", "/home/user/d/a.txt", "two"},
		"three":      {"FILE_TYPE_FILE", "/home/user/d/a.txt", "three"},
		"dir":        {"FILE_TYPE_DIRECTORY", "/home/user/d", "dir"},
		"dangling":   {"FILE_TYPE_SYMLINK", "/home/user/dangling", "dangling"},
		"loop1":      {"FILE_TYPE_SYMLINK", "/home/user/loop1", "loop1"},
		"dir/a.txt":  {"FILE_TYPE_FILE", "<nil>", "a.txt"},
		"/etc/../~x": {"", "", ""},
	} {
		m, failure := tr.call("filesystem.Filesystem/Stat", fmt.Sprintf(`{"path":%q}`, name))
		if want[0] == "" {
			if !strings.HasPrefix(failure, "not_found: ") {
				t.Errorf("%s: %v %s", name, m, failure)
			}
			continue
		}
		e, _ := m["entry"].(map[string]any)
		if got := [3]string{fmt.Sprint(e["type"]), fmt.Sprint(e["symlinkTarget"]), fmt.Sprint(e["name"])}; got != want {
			t.Errorf("%s: %v %s", name, got, failure)
		}
	}
}

func TestADirectoryIsListedAsOneWalksIt(t *testing.T) {
	tr := newTrial(t)
	tr.run("mkdir -p ls/s1/a ls/s1/b ls/s2/c ls/s10; touch ls/file1.txt ls/s1.x; ln -s /home/user/ls/s1 ls/link; ln -s ls other; ln -s loop loop")
	for body, want := range map[string]string{
		`{"path":"ls"}`:                    "ls/file1.txt ls/link ls/s1 ls/s1.x ls/s10 ls/s2",
		`{"path":"ls","depth":1}`:          "ls/file1.txt ls/link ls/s1 ls/s1.x ls/s10 ls/s2",
		`{"path":"ls","depth":3}`:          "ls/file1.txt ls/link ls/s1 ls/s1/a ls/s1/b ls/s1.x ls/s10 ls/s2 ls/s2/c",
		`{"path":"ls","depth":4000000000}`: "ls/file1.txt ls/link ls/s1 ls/s1/a ls/s1/b ls/s1.x ls/s10 ls/s2 ls/s2/c",
		`{"path":"other","depth":2}`:       "other/file1.txt other/link other/s1 other/s1/a other/s1/b other/s1.x other/s10 other/s2 other/s2/c",
		`{"path":"ls/s10"}`:                "",
	} {
		var got []string
		list, _ := tr.must("filesystem.Filesystem/ListDir", body)["entries"].([]any)
		for _, e := range list {
			m, _ := e.(map[string]any)
			got = append(got, strings.TrimPrefix(fmt.Sprint(m["path"]), "/home/user/"))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v", body, got)
		}
	}
	for path, want := range map[string]string{
		"nope": "not_found: directory not found: /home/user/nope", "ls/file1.txt": "invalid_argument: path is not a directory: /home/user/ls/file1.txt",
		"loop": "failed_precondition: ",
	} {
		if _, failure := tr.call("filesystem.Filesystem/ListDir", fmt.Sprintf(`{"path":%q}`, path)); !strings.HasPrefix(failure, want) {
			t.Errorf("%s: %s", path, failure)
		}
	}
}

func TestFilesAreMadeMovedAndRemoved(t *testing.T) {
	tr := newTrial(t)
	tr.put("a", "1")
	tr.put("b", "2")
	for _, c := range []struct{ method, body, want string }{
		{"MakeDir", `{"path":"x/y"}`, ""},
		{"MakeDir", `{"path":"x/y"}`, "already_exists: directory already exists: /home/user/x/y"},
		{"MakeDir", `{"path":"/"}`, "already_exists: "},
		{"MakeDir", `{"path":"a"}`, "invalid_argument: path already exists but it is not a directory: /home/user/a"},
		{"Move", `{"source":"a","destination":"new/dir/c"}`, ""},
		{"Move", `{"source":"a","destination":"z"}`, "not_found: "},
		{"Stat", `{"path":"a"}`, "not_found: file not found: lstat /home/user/a: no such file or directory"},
		{"Move", `{"source":"b","destination":"new/dir/c"}`, ""},
		{"Remove", `{"path":"new"}`, ""},
		{"Remove", `{"path":"new"}`, ""},
		{"Stat", `{"path":"new/dir/c"}`, "not_found: "},
		{"Stat", `{"path":"a\u0000"}`, "invalid_argument: "},
		{"Stat", `{"path":"` + strings.Repeat("a/", 3000) + `"}`, "invalid_argument: "},
		{"Remove", `{"path":"/etc/passwd"}`, "permission_denied: "},
		{"Stat", `{"path":7}`, "invalid_argument: "},
	} {
		m, failure := tr.call("filesystem.Filesystem/"+c.method, c.body)
		if !strings.HasPrefix(failure, c.want) || (failure == "") != (c.want == "") {
			t.Errorf("%s %.80s: %v %s, want %s", c.method, c.body, m, failure, c.want)
		}
	}
}

func TestFilesAreOfUsersThatThereAre(t *testing.T) {
	tr := newTrial(t)
	for user, want := range map[string]string{"user": "", "": "", "root": "", "zork": "unauthenticated: invalid username: 'zork'"} {
		if _, failure := tr.call("filesystem.Filesystem/Stat", `{"path":"/"}`, "Authorization", "Basic "+base64Of(user+":")); !strings.HasPrefix(failure, want) || (failure == "") != (want == "") {
			t.Errorf("%s: %s", user, failure)
		}
		code, body, _ := tr.ask("GET", "/files?path=/etc/passwd&username="+user, "")
		if (code == 200) != (want == "") || code != 200 && !strings.HasPrefix(body, `{"code":401,"message":"invalid username: '`+user+`'`) {
			t.Errorf("%s: %d %s", user, code, body)
		}
	}
}

func TestWhatIsSignedIsOfTheUserThatItIsSignedFor(t *testing.T) {
	tr := newTrial(t, func(o *Options) { o.Token = token })
	tr.put("here", "x", "X-Access-Token", token)
	q := url.Values{"path": {"here"}}
	q.Set("signature", e2b.Signature(token, "GET", q))
	if code, body, _ := tr.ask("GET", "/files?"+q.Encode(), ""); code != 200 || body != "x" {
		t.Fatalf("%d %s", code, body)
	}
	if code, body, _ := tr.ask("GET", "/files?"+q.Encode(), "", "Authorization", "Basic "+base64Of("root:")); code != 401 {
		t.Errorf("root by its head: %d %s", code, body)
	}
	q.Set("username", "root")
	if code, body, _ := tr.ask("GET", "/files?"+q.Encode(), ""); code != 401 {
		t.Errorf("root by its query: %d %s", code, body)
	}
}

func TestNamesBeginWhereTheBoxSays(t *testing.T) {
	tr := newTrial(t, func(o *Options) { o.Dir, o.User = "/tmp", "somebody" })
	tr.put("here", "x")
	if e := tr.entry("Stat", `{"path":"here"}`); e["path"] != "/tmp/here" {
		t.Errorf("%v", e)
	}
	if e := tr.entry("Stat", `{"path":"~"}`); e["path"] != "/home/user" {
		t.Errorf("%v", e)
	}
	for _, user := range []string{"somebody", "user"} {
		s := tr.open("process.Process/Start", start("pwd; whoami"), "Authorization", "Basic "+base64Of(user+":"))
		s.pid()
		if out, _, _, failure := s.rest(); out != "/tmp\nuser\n" {
			t.Errorf("%s: %q %s", user, out, failure)
		}
	}
}

func TestMetadataFollowsAFile(t *testing.T) {
	tr := newTrial(t)
	code, body, _ := tr.ask("POST", "/files?path=m", "x", "Content-Type", "application/octet-stream", "X-Metadata-Author", "Mish", "X-Metadata-P", "")
	if code != 200 || body != `[{"path":"/home/user/m","name":"m","type":"file","metadata":{"author":"Mish","p":""}}]` {
		t.Fatalf("%d %s", code, body)
	}
	want := map[string]any{"author": "Mish", "p": ""}
	tr.run("mkdir d; ln -s d l; ln -s m ml")
	for _, e := range []map[string]any{
		tr.entry("Stat", `{"path":"m"}`), tr.entry("Stat", `{"path":"ml"}`), tr.entry("Move", `{"source":"m","destination":"l/n"}`), tr.entry("Stat", `{"path":"d/n"}`),
		tr.entry("Stat", `{"path":"l/n"}`),
	} {
		if !reflect.DeepEqual(e["metadata"], want) {
			t.Errorf("%v", e)
		}
	}
	tr.must("filesystem.Filesystem/Move", `{"source":"d","destination":"e"}`)
	list, _ := tr.must("filesystem.Filesystem/ListDir", `{"path":"e"}`)["entries"].([]any)
	if one, _ := list[0].(map[string]any); !reflect.DeepEqual(one["metadata"], want) {
		t.Errorf("listed: %v", list)
	}
	tr.put("e/n", "y")
	if e := tr.entry("Stat", `{"path":"e/n"}`); e["metadata"] != nil {
		t.Errorf("written anew: %v", e)
	}
	tr.put("e/n", "y", "X-Metadata-A", "b")
	tr.must("filesystem.Filesystem/Remove", `{"path":"e"}`)
	if !tr.box.metadata.empty() {
		t.Error("what is removed is remembered")
	}
	for _, h := range [][2]string{
		{"X-Metadata-", "x"}, {"X-Metadata-" + strings.Repeat("k", 247), "x"}, {"X-Metadata-K", strings.Repeat("v", 4096)}, {"X-Metadata-K", "caf\xe9"},
	} {
		if code, body, _ := tr.ask("POST", "/files?path=never", "x", "Content-Type", "application/octet-stream", h[0], h[1]); code != 400 {
			t.Errorf("%.40s: %d %s", h[0], code, body)
		}
	}
	if _, failure := tr.call("filesystem.Filesystem/Stat", `{"path":"never"}`); failure == "" {
		t.Error("what was refused was written")
	}
}

func TestMetadataIsBounded(t *testing.T) {
	var m metadata
	for i := range maxDescribed + 100 {
		m.set(fmt.Sprint("/", i), map[string]string{"a": "b"})
	}
	if len(m.files) > maxDescribed {
		t.Errorf("%d files", len(m.files))
	}
}

func TestPathsAreComparedByTheirParts(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"/a", "/a", 0}, {"/a", "/b", -1}, {"/a/b", "/a.x", -1}, {"/a", "/a/b", -1}, {"/a/b", "/a", 1}, {"/s1/a", "/s10", -1}} {
		got := comparePaths(c.a, c.b)
		if (got < 0) != (c.want < 0) || (got > 0) != (c.want > 0) {
			t.Errorf("%s %s: %d", c.a, c.b, got)
		}
	}
}

func TestAWatchTellsChangesByRelativeNames(t *testing.T) {
	tr := newTrial(t)
	tr.must("filesystem.Filesystem/MakeDir", `{"path":"w"}`)
	tr.run("ln -s w l")
	for _, name := range []string{"w", "l"} {
		s := tr.open("filesystem.Filesystem/WatchDir", fmt.Sprintf(`{"path":%q,"recursive":true,"includeEntry":true}`, name))
		if _, m, err := s.next(); err != nil || m["start"] == nil {
			t.Fatalf("%v %v", m, err)
		}
		tr.put(name+"/f", "x")
		for _, want := range []string{"EVENT_TYPE_CREATE", "EVENT_TYPE_CHMOD", "EVENT_TYPE_WRITE"} {
			_, m, err := s.next()
			if err != nil {
				t.Fatal(err)
			}
			e, _ := m["filesystem"].(map[string]any)
			entry, _ := e["entry"].(map[string]any)
			if e["name"] != "f" || e["type"] != want || entry["type"] != "FILE_TYPE_FILE" {
				t.Errorf("%s: %v", want, m)
			}
		}
		tr.must("filesystem.Filesystem/Remove", `{"path":"w/f"}`)
		for {
			_, m, err := s.next()
			if err != nil {
				t.Fatal(err)
			}
			if e, _ := m["filesystem"].(map[string]any); e["type"] == "EVENT_TYPE_REMOVE" {
				if e["name"] != "f" || e["entry"] != nil {
					t.Errorf("%v", m)
				}
				break
			}
		}
		s.quit()
	}
	for path, want := range map[string]string{"nope": "not_found", "/etc/passwd": "invalid_argument"} {
		s := tr.open("filesystem.Filesystem/WatchDir", fmt.Sprintf(`{"path":%q}`, path))
		_, m, err := s.next()
		if e, _ := m["error"].(map[string]any); err != nil || e["code"] != want {
			t.Errorf("%s: %v %v", path, m, err)
		}
		if _, failure := tr.call("filesystem.Filesystem/CreateWatcher", fmt.Sprintf(`{"path":%q}`, path)); !strings.HasPrefix(failure, want) {
			t.Errorf("%s: %s", path, failure)
		}
	}
}

func TestEventsCanBeFetched(t *testing.T) {
	tr := newTrial(t)
	tr.must("filesystem.Filesystem/MakeDir", `{"path":"w"}`)
	id := fmt.Sprint(tr.must("filesystem.Filesystem/CreateWatcher", `{"path":"w","recursive":true}`)["watcherId"])
	if !strings.HasPrefix(id, "w") {
		t.Errorf("id %s", id)
	}
	ask := fmt.Sprintf(`{"watcherId":%q}`, id)
	tr.must("filesystem.Filesystem/MakeDir", `{"path":"w/n"}`)
	var seen []string
	for len(seen) == 0 || seen[len(seen)-1] != "EVENT_TYPE_WRITE n/f" {
		if len(seen) == 1 {
			tr.put("w/n/f", "x")
		}
		list, _ := tr.must("filesystem.Filesystem/GetWatcherEvents", ask)["events"].([]any)
		for _, e := range list {
			m, _ := e.(map[string]any)
			seen = append(seen, fmt.Sprint(m["type"], " ", m["name"]))
		}
	}
	if want := []string{"EVENT_TYPE_CREATE n", "EVENT_TYPE_CREATE n/f", "EVENT_TYPE_CHMOD n/f", "EVENT_TYPE_WRITE n/f"}; !reflect.DeepEqual(seen, want) {
		t.Errorf("%v", seen)
	}
	tr.must("filesystem.Filesystem/RemoveWatcher", ask)
	for _, method := range []string{"GetWatcherEvents", "RemoveWatcher"} {
		if _, failure := tr.call("filesystem.Filesystem/"+method, ask); failure != "not_found: watcher with id "+id+" not found" {
			t.Errorf("%s: %s", method, failure)
		}
	}
	for i := range maxWatchers {
		if _, failure := tr.call("filesystem.Filesystem/CreateWatcher", `{"path":"w"}`); failure != "" {
			t.Fatalf("watcher %d: %s", i, failure)
		}
	}
	if _, failure := tr.call("filesystem.Filesystem/CreateWatcher", `{"path":"w"}`); !strings.HasPrefix(failure, "resource_exhausted: ") {
		t.Errorf("one too many: %s", failure)
	}
}
