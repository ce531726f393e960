package auxiliary

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock/internal/audit"
	"github.com/paddock-sandbox/paddock/internal/audit/chain"
	"github.com/paddock-sandbox/paddock/internal/audit/segment"
	"github.com/paddock-sandbox/paddock/internal/cli/clitest"
)

// segments writes a record of three segments, signed by the key of a user, and
// gives them by their names.
func segments(t *testing.T, data string) (objects map[string][]byte, names []string) {
	t.Helper()
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	key, err := chain.MakeKey(filepath.Join(data, "audit"))
	if err != nil {
		t.Skipf("a key of one's own cannot be kept here: %v", err)
	}
	dir, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer dir.Close()
	for i := range 3 {
		w, err := segment.NewWriter(segment.Options{Dir: dir, Key: key})
		if err != nil {
			t.Fatal(err)
		}
		line, err := audit.Line(audit.Event{Time: time.Unix(int64(i), 0), Kind: audit.Did, Action: &audit.Action{Who: "a", What: "sandbox.create", Result: "ok"}})
		if err == nil {
			_, err = w.Write(line)
		}
		if err == nil {
			err = w.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	entries, err := os.ReadDir(dir.Name())
	if err != nil {
		t.Fatal(err)
	}
	objects = make(map[string][]byte)
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		names = append(names, e.Name())
		if objects[e.Name()], err = dir.ReadFile(e.Name()); err != nil {
			t.Fatal(err)
		}
	}
	return objects, names
}

func TestARecordInABucketIsVerifiedByItsAddress(t *testing.T) {
	dir := t.TempDir()
	objects, names := segments(t, filepath.Join(dir, ".data"))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signed := strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=AKID/") && strings.Contains(r.Header.Get("Authorization"), "/test-1/s3/")
		name, below := strings.CutPrefix(r.URL.Path, "/records/server-1/")
		switch {
		case !signed || r.Method != http.MethodGet:
			w.WriteHeader(http.StatusForbidden)
		case r.URL.Path == "/records/" && r.URL.Query().Get("prefix") == "server-1/actions-":
			fmt.Fprint(w, "<ListBucketResult>")
			for _, name := range names {
				if objects[name] != nil {
					fmt.Fprintf(w, "<Contents><Key>server-1/%s</Key></Contents>", name)
				}
			}
			fmt.Fprint(w, "</ListBucketResult>")
		case below && objects[name] != nil:
			_, _ = w.Write(objects[name])
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	defer server.Close()
	env := map[string]string{"AWS_REGION": "test-1", "AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "very-secret"}
	address := server.URL + "/records/server-1/"
	verify := func(env map[string]string, want int, args ...string) *clitest.Invocation {
		t.Helper()
		v := invoke(dir, env, nil, append([]string{"audit", "verify"}, args...)...)
		if code := v.Run(t.Context()); code != want || strings.Contains(v.Stdout.String()+v.Stderr.String(), "very-secret") {
			t.Errorf("%q: exit status %d, want %d: %q, %q", args, code, want, v.Stdout.String(), v.Stderr.String())
		}
		return v
	}
	if v := verify(env, 0, address); !strings.HasPrefix(v.Stdout.String(), address+": whole: ") || !strings.Contains(v.Stdout.String(), "3 segments") {
		t.Errorf("%q", v.Stdout.String())
	}
	var told struct {
		Bucket   string
		State    string
		Segments []struct{ Name string }
	}
	v := verify(env, 0, "--json", address)
	if err := json.Unmarshal([]byte(v.Stdout.String()), &told); err != nil || told.Bucket != address || told.State != "whole" || len(told.Segments) != 3 {
		t.Errorf("%v: %+v", err, told)
	}
	verify(map[string]string{"AWS_REGION": "test-1", "AWS_ACCESS_KEY_ID": "other", "AWS_SECRET_ACCESS_KEY": "very-secret"}, 125, address)
	if v := verify(nil, 125, address); !strings.Contains(v.Stderr.String(), "AWS_REGION") {
		t.Errorf("%q", v.Stderr.String())
	}
	for _, wrong := range []string{"s3://records/server-1/", "http://192.0.2.1/records/", "https://key:secret@s3.example/records/", server.URL + "/records/server-1/?x=y", server.URL} {
		verify(env, 125, wrong)
	}
	middle := objects[names[1]]
	objects[names[1]] = slices.Concat(middle[:len(middle)/2], middle[len(middle)/2+1:])
	if v := verify(env, 1, address); !strings.Contains(v.Stderr.String(), address+names[1]) {
		t.Errorf("changed: %q", v.Stderr.String())
	}
	delete(objects, names[1])
	if v := verify(env, 1, address); !strings.Contains(v.Stderr.String(), "missing") {
		t.Errorf("removed: %q", v.Stderr.String())
	}
	objects[names[1]], objects[names[2]] = objects[names[2]], middle
	verify(env, 1, address)
	objects[names[2]], objects[names[1]] = objects[names[1]], middle
	delete(objects, names[0])
	verify(env, 2, address)
}
