package endtoend

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"text/template"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/driver/microvm/microvmtest"
	"github.com/paddock-sandbox/paddock/internal/policy"
)

// Verdicts of a try. The first three are those of a gateway; the others are never wanted.
const (
	allowed    = "allowed"
	denied     = "denied"
	answered   = "answered" // by the policy, without a server
	hangs      = "hangs"
	distrusted = "distrusted" // the certificate is not trusted
	odd        = "odd"
)

// A try is one attempt of a program in a box.
type try struct {
	Name   string            `json:"name"`
	Proto  string            `json:"proto"` // "https", "http", "tcp", "udp" or "dns"
	Host   string            `json:"host"`
	Port   uint16            `json:"port"`
	Method string            `json:"method,omitempty"` // empty means GET
	Path   string            `json:"path,omitempty"`   // with the query; empty means "/"
	Header map[string]string `json:"header,omitempty"` // "$NAME" as a whole value is an environment variable
}

func (y try) url() string {
	return fmt.Sprintf("%s://%s:%d%s", y.Proto, y.Host, y.Port, y.path())
}

func (y try) path() string {
	if y.Path == "" {
		return "/"
	}
	return y.Path
}

func (y try) method() string {
	if y.Method == "" {
		return http.MethodGet
	}
	return y.Method
}

// An outcome is the result of a try.
type outcome struct {
	Name    string `json:"name"`
	Verdict string `json:"verdict"`
	Text    string `json:"text"` // what the program got
	Seen    *seen  `json:"seen,omitempty"`
}

// judge returns the verdict of an HTTP answer.
func judge(status int, header http.Header, body []byte) (string, *seen) {
	switch header.Get(marker) {
	case "server":
		s := new(seen)
		if json.Unmarshal(body, s) != nil {
			s = nil
		}
		return allowed, s
	case "canned":
		if status == 203 && string(body) == "as the policy says" {
			return answered, nil
		}
		return odd, nil
	}
	if slices.Contains([]int{http.StatusForbidden, http.StatusMisdirectedRequest, http.StatusTooManyRequests}, status) {
		return denied, nil
	}
	return odd, nil
}

// A row is a try and its expected outcome.
type row struct {
	try
	want string
	sees map[string]string // headers that the server must see; empty means absent

	// explained is the answer of policy explain if it cannot know better, for the reason
	// why.
	explained, why string
}

// secretValue is the value of the policy's secret.
const secretValue = "trial-value-Zm9vYmFy-0123456789"

// verdicts returns the table.
func verdicts(w *world) []row {
	https := func(name, host, path, want string) row {
		return row{try: try{Name: name, Proto: "https", Host: host, Port: w.HTTPS, Path: path}, want: want}
	}
	with := func(r row, change func(*row)) row { change(&r); return r }
	plain := func(name, host, want string) row {
		return row{try: try{Name: name, Proto: "http", Host: host, Port: w.HTTP}, want: want}
	}
	tcp := func(name, host string, port uint16, want string) row {
		return row{try: try{Name: name, Proto: "tcp", Host: host, Port: port}, want: want}
	}
	udp := func(name, host string, port uint16, want string) row {
		return row{try: try{Name: name, Proto: "udp", Host: host, Port: port}, want: want}
	}
	header := func(name, value string) func(*row) {
		return func(r *row) { r.Header = map[string]string{name: value} }
	}
	method := func(m string) func(*row) { return func(r *row) { r.Method = m } }
	spent := func(r *row) { r.explained, r.why = allowed, "what is spent is known to the gateway alone" }
	rows := []row{
		https("a name", "exact.test", "/", allowed),
		with(https("a name at another port", "exact.test", "/", denied), func(r *row) { r.Port = w.Other }),
		https("a name that no rule has", "unknown.test", "/", denied),
		https("a name below one that is allowed", "below.exact.test", "/", denied),
		https("a name in other letters, with a dot", "EXACT.test.", "/", allowed),
		https("a name below a suffix", "a.b.wild.test", "/", allowed),
		https("the suffix itself", "wild.test", "/", denied),
		https("one that is denied of a suffix", "bad.wild.test", "/", denied),
		https("one that only ends like a suffix", "notwild.test", "/", denied),
		with(https("a name at an address that no rule lists", elsewhere, "/", denied), func(r *row) {
			r.explained, r.why = allowed, "explaining looks no address up"
		}),
		plain("HTTP without TLS", "plain.test", allowed),
		plain("HTTP to an address", w.home(), allowed),
		plain("HTTP to a name without that port", "exact.test", denied),

		https("a path of one part", "api.test", "/v1/users", allowed),
		https("a path of more parts than the pattern", "api.test", "/v1/users/7", denied),
		https("a path below a pattern of any parts", "api.test", "/files/a/b", allowed),
		https("a path that is denied", "api.test", "/v1/keys", denied),
		https("another path", "api.test", "/", denied),
		with(https("another method", "api.test", "/v1/users", denied), method(http.MethodPost)),
		https("a query with all that is asked for", "query.test", "/?team=red&any=thing", allowed),
		https("a query that lacks one", "query.test", "/?team=red", denied),
		https("a query with another value", "query.test", "/?team=blue&any=thing", denied),
		with(https("a header", "header.test", "/", allowed), func(r *row) {
			header("X-Team", "red")(r)
			r.explained, r.why = denied, "a question has no headers"
		}),
		with(https("another header", "header.test", "/", denied), header("X-Team", "blue")),
		https("the scheme", "scheme.test", "/", allowed),
		plain("the other scheme", "scheme.test", denied),

		https("an answer of the policy's", "canned.test", "/", answered),
		plain("the same without TLS", "canned.test", answered),
		with(https("headers that are set and removed", "change.test", "/", allowed), func(r *row) {
			r.Header = map[string]string{"X-Unwanted": "yes", "X-Set": "by the guest", "X-Kept": "kept"}
			r.sees = map[string]string{"X-Unwanted": "", "X-Set": "by the gateway", "X-Kept": "kept"}
		}),
		https("the first of two requests", "limited.test", "/", allowed),
		https("the second", "limited.test", "/", allowed),
		with(https("a third", "limited.test", "/", denied), spent),
		https("a host behind a proxy", "led.test", "/", allowed),
		https("one of a group", "one.friends.test", "/", allowed),
		https("the other of it", "two.friends.test", "/", allowed),
		https("none of the group", "three.friends.test", "/", denied),
		with(https("a secret, to its host", "secret.test", "/", allowed), func(r *row) {
			header("Authorization", "$TRIAL_TOKEN")(r)
			r.sees = map[string]string{"Authorization": secretValue}
		}),

		tcp("a port that speaks no HTTP", "raw.test", w.Echo, allowed),
		tcp("an address", w.home(), w.Echo, allowed),
		tcp("an address in a range", w.inRange(), w.Echo, allowed),
		tcp("one that is denied of the range", w.forbidden(), w.Echo, denied),
		tcp("an address in no range", w.unlisted(), w.Echo, denied),
		tcp("a name that has no such port", "exact.test", w.Echo, denied),
		tcp("the machine's own ports, through the gateway's address", "198.18.0.1", w.Echo, denied),
		tcp("the address where clouds keep their keys", "169.254.169.254", 80, denied),
		udp("datagrams", "datagrams.test", w.UDP, allowed),
		udp("datagrams to another port", "datagrams.test", w.HTTPS, denied),
		udp("datagrams where only connections are allowed", "exact.test", w.HTTPS, denied),
		{try: try{Name: "the address of a name", Proto: "dns", Host: "exact.test"}, want: allowed},
		{try: try{Name: "the address of an unknown name", Proto: "dns", Host: "unknown.test"}, want: denied},
	}
	if w.addressed() {
		return rows
	}
	return slices.DeleteFunc(rows, func(r row) bool { return strings.HasPrefix(r.Host, w.Network) })
}

// names returns the names in the table.
func names() []string {
	list := []string{"exact.test", "below.exact.test", "unknown.test", "a.b.wild.test", "wild.test", "bad.wild.test", "notwild.test", "plain.test", "raw.test", "datagrams.test", "api.test", "query.test", "header.test", "scheme.test", "canned.test", "change.test", "limited.test", "led.test", "secret.test"}
	for _, n := range []string{"one", "two", "three"} {
		list = append(list, n+".friends.test")
	}
	return list
}

// policy reads the policy with the world's ports.
func (w *world) policy(t *testing.T) (*policy.File, paddock.Spec, policy.Host) {
	t.Helper()
	text, err := os.ReadFile("testdata/policy.yaml")
	if os.IsNotExist(err) { // the user's process cannot read the source
		text, err = os.ReadFile(w.Programs + "/policy.yaml")
	}
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := template.Must(template.New("policy").Parse(string(text))).Execute(&b, w); err != nil {
		t.Fatal(err)
	}
	f, err := policy.Read("policy.yaml", b.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	host := policy.Host{Home: dir, Dir: dir, Env: func(name string) (string, bool) {
		return secretValue, name == "TRIAL_TOKEN_VALUE"
	}}
	var spec paddock.Spec
	if err := f.Apply(&spec, host); err != nil {
		t.Fatal(err)
	}
	return f, spec, host
}

// TestOnePolicyFileHasTheSameVerdictsOnEveryTier tries the table in a box of each
// tier, by root and by a user.
func TestOnePolicyFileHasTheSameVerdictsOnEveryTier(t *testing.T) {
	w := newWorld(t, names()...)
	if w.file != "" { // the first process
		w.withPolicy(t)
		t.Run("as a user", func(t *testing.T) { w.asUser(t, "^"+strings.Split(t.Name(), "/")[0]+"$") })
	}
	for _, tr := range tiers() {
		t.Run(string(tr.name), func(t *testing.T) {
			if tr.name == paddock.MicroVM {
				microvmtest.Need(t)
			}
			w.compare(t, tr)
		})
	}
	t.Run("explained", w.explains)
	if led := fmt.Sprintf("led.test:%d", w.HTTPS); w.file != "" && !slices.Contains(w.asked(), led) {
		t.Errorf("the upstream proxy was asked for %q, and not for %s", w.asked(), led)
	}
}

// withPolicy puts the policy where the user's process can read it.
func (w *world) withPolicy(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile("testdata/policy.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w.put(t, "policy.yaml", text)
}

// compare tries the table in a box of a tier.
func (w *world) compare(t *testing.T, tr tier) {
	t.Helper()
	_, spec, _ := w.policy(t)
	b := w.box(t, tr, spec.Policy.Network)
	rows := verdicts(w)
	var got []outcome
	if tr.name == paddock.Sim {
		rows = slices.DeleteFunc(rows, func(r row) bool { return r.Proto != "http" && r.Proto != "https" }) // it has no others
		for _, r := range rows {
			got = append(got, b.curl(t, r.try))
		}
	} else {
		got = b.probe(t, rows)
	}
	if len(got) != len(rows) {
		t.Fatalf("%d outcomes of %d tries", len(got), len(rows))
	}
	for i, r := range rows {
		t.Run(r.Name, func(t *testing.T) {
			if got[i].Verdict != r.want {
				t.Errorf("%s %s: %s, want %s: %s\n\t%s", r.Method, r.url(), got[i].Verdict, r.want, got[i].Text, b.events.about(r.Host))
			}
			for name, want := range r.sees {
				if got[i].Seen == nil {
					t.Errorf("the server did not say what it saw: %s", got[i].Text)
				} else if have := got[i].Seen.Header.Get(name); have != want && !scrubbed(b, r, name, have) {
					t.Errorf("the server saw %s: %q, want %q", name, have, want)
				}
			}
		})
	}
}

// scrubbed reports whether an echoed header is a secret's, which comes back as its
// placeholder. The server has checked that the header had another value there.
func scrubbed(b *testBox, r row, name, have string) bool {
	return r.Header[name] == "$TRIAL_TOKEN" && have != "" && have != secretValue && (b.world.file == "" || b.world.sawSecret())
}

func (w *world) sawSecret() bool {
	return slices.ContainsFunc(w.came("/"), func(s seen) bool { return s.Header.Get("Authorization") == secretValue })
}

// probe makes the tries with this package's program.
func (b *testBox) probe(t *testing.T, rows []row) []outcome {
	t.Helper()
	var tries []try
	for _, r := range rows {
		tries = append(tries, r.try)
	}
	data, err := json.Marshal(tries)
	if err != nil {
		t.Fatal(err)
	}
	r := b.run(t, paddock.Cmd{Args: []string{inside + "/trial"}, Env: map[string]string{probeVariable: "tries", triesVariable: string(data)}})
	var got []outcome
	dec := json.NewDecoder(strings.NewReader(r.out))
	for dec.More() {
		var o outcome
		if err := dec.Decode(&o); err != nil {
			t.Fatalf("%v: %v", err, r)
		}
		got = append(got, o)
	}
	if r.exit.Code != 0 {
		t.Fatalf("the probe ended: %v", r)
	}
	return got
}

// curl makes one request with the box's curl.
func (b *testBox) curl(t *testing.T, y try) outcome {
	t.Helper()
	args := []string{"-s", "-S", "-i", "--max-time", "20", "-X", y.method()}
	script := `curl "$@"`
	for name, value := range y.Header {
		if variable, ok := strings.CutPrefix(value, "$"); ok {
			script += fmt.Sprintf(` -H "%s: $%s"`, name, variable)
		} else {
			args = append(args, "-H", name+": "+value)
		}
	}
	r := b.sh(t, script, append(args, y.url())...)
	o := outcome{Name: y.Name, Text: r.String()}
	switch r.exit.Code {
	case 0:
		status, header, body, err := splitAnswer(r.out)
		if err != nil {
			o.Verdict, o.Text = odd, err.Error()+": "+o.Text
			return o
		}
		o.Verdict, o.Seen = judge(status, header, body)
	case 28:
		o.Verdict = hangs
	case 60:
		o.Verdict = distrusted
	case 6, 7, 35, 52, 56:
		o.Verdict = denied
	default:
		o.Verdict = odd
	}
	return o
}

// splitAnswer splits the output of curl -i.
func splitAnswer(text string) (int, http.Header, []byte, error) {
	head, body, ok := strings.Cut(text, "\r\n\r\n")
	if !ok {
		return 0, nil, nil, fmt.Errorf("no end of the head")
	}
	lines := strings.Split(head, "\r\n")
	words := strings.SplitN(lines[0], " ", 3)
	if len(words) < 2 {
		return 0, nil, nil, fmt.Errorf("status line %q", lines[0])
	}
	status, err := strconv.Atoi(words[1])
	if err != nil {
		return 0, nil, nil, err
	}
	h := http.Header{}
	for _, l := range lines[1:] {
		name, value, _ := strings.Cut(l, ":")
		h.Add(name, strings.TrimSpace(value))
	}
	return status, h, []byte(body), nil
}

// explains runs policy explain for each row.
func (w *world) explains(t *testing.T) {
	f, spec, host := w.policy(t)
	for _, r := range verdicts(w) {
		if r.Proto == "dns" || r.Proto == "udp" || r.Method != "" {
			continue // these need no explanation
		}
		object := r.url()
		if r.Proto == "tcp" {
			object = fmt.Sprintf("%s:%d", r.Host, r.Port)
		}
		if _, err := url.Parse(object); r.Proto != "tcp" && err != nil {
			t.Fatal(err)
		}
		q, err := policy.ParseQuestion([]string{"connect", object}, host)
		if err != nil {
			t.Errorf("%s: connect %s: %v", r.Name, object, err)
			continue
		}
		a, err := policy.Explain(spec, f, host, q)
		if err != nil {
			t.Errorf("%s: connect %s: %v", r.Name, object, err)
			continue
		}
		want := r.want
		if r.explained != "" {
			want = r.explained
		}
		if a.Allowed != (want != denied) {
			t.Errorf("%s: connect %s: the explanation is %+v, want it %s", r.Name, object, a, want)
		}
	}
}
