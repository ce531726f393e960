package decide

import (
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func get(target string) Request {
	p, query, _ := strings.Cut(target, "?")
	return Request{Scheme: "https", Method: "GET", Path: p, RawQuery: query}
}

func TestADenyOfAPathIsNotEvadedByItsCaseOrAHeader(t *testing.T) {
	deny := paddock.NetworkRule{Deny: true, Host: "a.example", Paths: []string{"/repos/acme/prod/**"}}
	only := paddock.NetworkRule{Host: "a.example", Paths: []string{"/open/**"}}
	asks := func(path, header, value string) Request {
		q := get(path)
		q.Header = map[string][]string{header: {value}}
		return q
	}
	for _, q := range []Request{
		get("/repos/ACME/prod/x"), get("/Repos/acme/PROD/x"), get("/%72epos/%41cme/prod/x"),
		asks("/open/x", "X-Original-Url", "/repos/acme/prod/x?y"), asks("/open/x", "X-Rewrite-Url", "/repos/acme/prod/x"), asks("/open/x", "x-rewrite-url", "nonsense"),
	} {
		if v := list(t, allow("a.example"), deny).Request(flow(t, "a.example:443"), q); v.Allow || v.Rule != 1 {
			t.Errorf("%s, %v: %+v", q.Path, q.Header, v)
		}
		if v := list(t, only).Request(flow(t, "a.example:443"), q); v.Allow {
			t.Errorf("%s, %v, where only others are allowed: %+v", q.Path, q.Header, v)
		}
	}
	if v := list(t, only).Request(flow(t, "a.example:443"), asks("/open/x", "X-Original-Url", "/open/y")); !v.Allow {
		t.Errorf("%+v", v)
	}
}

func TestARequestIsJudgedByWhatItAsks(t *testing.T) {
	const host = "a.example"
	rule := func(change func(*paddock.NetworkRule)) paddock.NetworkRule {
		nr := paddock.NetworkRule{Host: host}
		change(&nr)
		return nr
	}
	paths := func(d bool, p ...string) paddock.NetworkRule {
		return paddock.NetworkRule{Deny: d, Host: host, Paths: p}
	}
	methods := func(d bool, m ...string) paddock.NetworkRule {
		return paddock.NetworkRule{Deny: d, Host: host, Methods: m}
	}
	query := func(d bool, name, value string) paddock.NetworkRule {
		return paddock.NetworkRule{Deny: d, Host: host, Query: map[string]string{name: value}}
	}
	header := func(d bool, name, value string) paddock.NetworkRule {
		return paddock.NetworkRule{Deny: d, Host: host, Headers: map[string]string{name: value}}
	}
	method := func(m string, headers ...string) Request {
		q := get("/")
		q.Method, q.Header = m, map[string][]string{}
		for i := 0; i < len(headers); i += 2 {
			q.Header[headers[i]] = append(q.Header[headers[i]], headers[i+1])
		}
		return q
	}
	asked := func(target string, headers ...string) Request {
		q := method("GET", headers...)
		q.Path, q.RawQuery, _ = strings.Cut(target, "?")
		return q
	}
	trails := func(name string, headers ...string) Request {
		q := method("GET", headers...)
		q.Trailer = []string{name}
		return q
	}
	https := rule(func(nr *paddock.NetworkRule) { nr.Scheme = "https" })
	plain := get("/")
	plain.Scheme = "http"
	all := allow(host)
	for _, tc := range []struct {
		name  string
		rules []paddock.NetworkRule
		q     Request
		want  int // the rule that decides; -1 means none
	}{
		{"a path", []paddock.NetworkRule{paths(false, "/v1/messages")}, get("/v1/messages"), 0},
		{"a path with a query", []paddock.NetworkRule{paths(false, "/v1/messages")}, get("/v1/messages?a=b"), 0},
		{"a longer path", []paddock.NetworkRule{paths(false, "/v1/messages")}, get("/v1/messages/1"), -1},
		{"a path with a slash behind", []paddock.NetworkRule{paths(false, "/v1/messages")}, get("/v1/messages/"), -1},
		{"a path in capitals", []paddock.NetworkRule{paths(false, "/v1")}, get("/V1"), -1},
		{"one part", []paddock.NetworkRule{paths(false, "/repos/*/issues")}, get("/repos/x/issues"), 0},
		{"two parts for one", []paddock.NetworkRule{paths(false, "/repos/*/issues")}, get("/repos/x/y/issues"), -1},
		{"any parts", []paddock.NetworkRule{paths(false, "/repos/**/issues")}, get("/repos/x/y/issues"), 0},
		{"a part of a part", []paddock.NetworkRule{paths(false, "/a*z")}, get("/abcz"), 0},
		{"characters of expressions are themselves", []paddock.NetworkRule{paths(false, "/a.b+(c)")}, get("/aXb+(c)"), -1},
		{"the second pattern", []paddock.NetworkRule{paths(false, "/a", "/b")}, get("/b"), 0},
		{"an encoded letter", []paddock.NetworkRule{paths(false, "/messages")}, get("/m%65ssages"), 0},
		{"an encoded percent sign", []paddock.NetworkRule{paths(false, "/search/*")}, get("/search/100%25"), 0},
		{"a space", []paddock.NetworkRule{paths(false, "/a b")}, get("/a%20b"), 0},
		{"dots that leave the allowed", []paddock.NetworkRule{paths(false, "/public/**")}, get("/public/../admin"), -1},
		{"encoded dots that leave the allowed", []paddock.NetworkRule{paths(false, "/public/**")}, get("/public/%2e%2e/admin"), -1},
		{"encoded slashes that leave the allowed", []paddock.NetworkRule{paths(false, "/public/**")}, get("/public/..%2fadmin"), -1},
		{"dots, encoded twice, that leave the allowed", []paddock.NetworkRule{paths(false, "/public/**")}, get("/public/%252e%252e/admin"), -1},
		{"backslashes that leave the allowed", []paddock.NetworkRule{paths(false, "/public/**")}, get(`/public/..\admin`), -1},
		{"encoded backslashes that leave the allowed", []paddock.NetworkRule{paths(false, "/public/**")}, get("/public/..%5cadmin"), -1},
		{"dots with parameters that leave the allowed", []paddock.NetworkRule{paths(false, "/public/**")}, get("/public/..;/admin"), -1},
		{"dots that stay within the allowed", []paddock.NetworkRule{paths(false, "/public/**")}, get("/public/a/../b"), 0},
		{"an encoded slash where all readings are allowed", []paddock.NetworkRule{paths(false, "/projects/**")}, get("/projects/a%2Fb/issues"), 0},
		{"an encoded slash in one part", []paddock.NetworkRule{paths(false, "/projects/*/issues")}, get("/projects/a%2Fb/issues"), -1},
		{"a path that is allowed only once decoded", []paddock.NetworkRule{paths(false, "/a/b")}, get("/a%2Fb"), -1},
		{"a path for nobody", []paddock.NetworkRule{paths(false, "/**")}, get("/a%00b"), -1},
		{"a path with a percent sign that encodes nothing", []paddock.NetworkRule{paths(false, "/**")}, get("/a%zz"), -1},
		{"an over-long slash", []paddock.NetworkRule{paths(false, "/**")}, get("/a%c0%afb"), -1},
		{"a path that is encoded four times", []paddock.NetworkRule{paths(false, "/**")}, get("/%25252561"), -1},
		{"a path that is encoded three times", []paddock.NetworkRule{paths(false, "/**")}, get("/%252561"), 0},
		{"a long path", []paddock.NetworkRule{paths(false, "/**")}, get("/" + strings.Repeat("a", maxPath)), -1},
		{"no path", []paddock.NetworkRule{paths(false, "/**")}, get("*"), -1},
		{"no path where none is asked for", []paddock.NetworkRule{methods(false, "OPTIONS")}, Request{Scheme: "https", Method: "OPTIONS", Path: "*"}, 0},

		{"a deny of a path", []paddock.NetworkRule{all, paths(true, "/admin/**")}, get("/admin/x"), 1},
		{"a deny of another path", []paddock.NetworkRule{all, paths(true, "/admin/**")}, get("/x"), 0},
		{"a deny of what is below, of the directory itself", []paddock.NetworkRule{all, paths(true, "/admin/**")}, get("/admin"), 1},
		{"a deny and a slash behind", []paddock.NetworkRule{all, paths(true, "/admin")}, get("/admin/"), 1},
		{"a deny and two slashes", []paddock.NetworkRule{all, paths(true, "/admin/**")}, get("//admin//x"), 1},
		{"a deny and a dot", []paddock.NetworkRule{all, paths(true, "/admin/**")}, get("/./admin/x"), 1},
		{"a deny and dots", []paddock.NetworkRule{all, paths(true, "/admin/**")}, get("/x/../admin/x"), 1},
		{"a deny and dots above the root", []paddock.NetworkRule{all, paths(true, "/admin/**")}, get("/../admin/x"), 1},
		{"a deny and encoded letters", []paddock.NetworkRule{all, paths(true, "/admin/**")}, get("/%61dmin/x"), 1},
		{"a deny and letters encoded twice", []paddock.NetworkRule{all, paths(true, "/admin/**")}, get("/%2561dmin/x"), 1},
		{"a deny and letters encoded three times", []paddock.NetworkRule{all, paths(true, "/admin/**")}, get("/%252561dmin/x"), 1},
		{"a deny and letters encoded ten times", []paddock.NetworkRule{all, paths(true, "/admin/**")}, get("/%" + strings.Repeat("25", 9) + "61dmin/x"), 1},
		{"a deny and an encoded slash", []paddock.NetworkRule{all, paths(true, "/admin/**")}, get("/admin%2fx"), 1},
		{"a deny and a slash encoded twice", []paddock.NetworkRule{all, paths(true, "/admin/**")}, get("/admin%252fx"), 1},
		{"a deny and a backslash", []paddock.NetworkRule{all, paths(true, "/admin/**")}, get(`/x\..\admin\x`), 1},
		{"a deny and an encoded backslash", []paddock.NetworkRule{all, paths(true, "/admin/**")}, get("/admin%5Cx"), 1},
		{"a deny and parameters", []paddock.NetworkRule{all, paths(true, "/admin/x")}, get("/admin;a=b/x;c"), 1},
		{"a deny and encoded parameters", []paddock.NetworkRule{all, paths(true, "/admin/x")}, get("/admin%3ba/x"), 1},
		{"a deny and an encoded question mark", []paddock.NetworkRule{all, paths(true, "/admin")}, get("/admin%3fx"), 1},
		{"a deny and an encoded number sign", []paddock.NetworkRule{all, paths(true, "/admin")}, get("/admin%23x"), 1},
		{"a deny and a NUL", []paddock.NetworkRule{all, paths(true, "/admin")}, get("/admin%00.html"), 1},
		{"a deny and a NUL encoded twice", []paddock.NetworkRule{all, paths(true, "/admin")}, get("/admin%2500.html"), 1},
		{"a deny and an over-long slash", []paddock.NetworkRule{all, paths(true, "/admin/**")}, get("/x%c0%af..%c0%afadmin/x"), 1},
		{"a deny and a long path", []paddock.NetworkRule{all, paths(true, "/admin")}, get("/" + strings.Repeat("a", maxPath)), 1},
		{"a deny and no path", []paddock.NetworkRule{all, paths(true, "/admin")}, get("https://a.example/admin"), 1},

		{"a method", []paddock.NetworkRule{methods(false, "GET", "HEAD")}, method("HEAD"), 0},
		{"another method", []paddock.NetworkRule{methods(false, "GET", "HEAD")}, method("POST"), -1},
		{"a method in small letters", []paddock.NetworkRule{methods(false, "GET")}, method("get"), -1},
		{"a deny of a method in small letters", []paddock.NetworkRule{all, methods(true, "DELETE")}, method("delete"), 1},
		{"a deny of a method by another name", []paddock.NetworkRule{all, methods(true, "DELETE")}, method("POST", "x-http-method-override", "DELETE"), 1},
		{"an allow of a method by another name", []paddock.NetworkRule{methods(false, "POST")}, method("POST", "X-Method-Override", "DELETE"), -1},

		{"a deny of a method by a name with other signs", []paddock.NetworkRule{all, methods(true, "DELETE")}, method("POST", "X_HTTP_METHOD_OVERRIDE", "DELETE"), 1},
		{"an allow of a method by a name with other signs", []paddock.NetworkRule{methods(false, "POST")}, method("POST", "X_Method.Override", "DELETE"), -1},
		{"an allow of the method by a name with other signs", []paddock.NetworkRule{methods(false, "POST")}, method("POST", "X_HTTP_METHOD_OVERRIDE", "POST"), 0},
		{"a deny of a method in a list", []paddock.NetworkRule{all, methods(true, "DELETE")}, method("POST", "X-Http-Method", "PUT, DELETE"), 1},
		{"a deny of a path by a name with other signs", []paddock.NetworkRule{all, paths(true, "/admin/**")}, method("GET", "X_ORIGINAL_URL", "/admin/x"), 1},
		{"an allow of a path by a name with other signs", []paddock.NetworkRule{paths(false, "/open/**", "/")}, method("GET", "X_Rewrite-URL", "/admin/x"), -1},

		{"the scheme", []paddock.NetworkRule{https}, get("/"), 0},
		{"another scheme", []paddock.NetworkRule{https}, plain, -1},

		{"a query", []paddock.NetworkRule{query(false, "q", "1")}, get("/?q=1&r=2"), 0},
		{"no query", []paddock.NetworkRule{query(false, "q", "1")}, get("/"), -1},
		{"another query", []paddock.NetworkRule{query(false, "q", "1")}, get("/?q=2"), -1},
		{"two values", []paddock.NetworkRule{query(false, "q", "1")}, get("/?q=1&q=2"), -1},
		{"any value", []paddock.NetworkRule{query(false, "q", "*")}, get("/?q=1&q=2"), 0},
		{"no value for any", []paddock.NetworkRule{query(false, "q", "*")}, get("/?r=1"), -1},
		{"an encoded value", []paddock.NetworkRule{query(false, "q", "a b")}, get("/?q=a+b"), 0},
		{"a query that nobody understands", []paddock.NetworkRule{query(false, "q", "1")}, get("/?q=1;r=2"), -1},
		{"a deny of one of two values", []paddock.NetworkRule{all, query(true, "q", "2")}, get("/?q=1&q=2"), 1},
		{"a deny of another value", []paddock.NetworkRule{all, query(true, "q", "2")}, get("/?q=1"), 0},
		{"a deny of an encoded value", []paddock.NetworkRule{all, query(true, "q", "a")}, get("/?%71=%61"), 1},
		{"a deny of a value encoded twice", []paddock.NetworkRule{all, query(true, "q", "a")}, get("/?q=%2561"), 1},
		{"a deny and a query that nobody understands", []paddock.NetworkRule{all, query(true, "q", "2")}, get("/?q=2;r"), 1},

		{"a deny of a name that PHP reads, with a dot", []paddock.NetworkRule{all, query(true, "user_id", "1")}, get("/?user.id=1"), 1},
		{"a deny of a name that PHP reads, with a plus", []paddock.NetworkRule{all, query(true, "user_id", "1")}, get("/?user+id=1"), 1},
		{"a deny of a name that PHP reads, with a space", []paddock.NetworkRule{all, query(true, "user_id", "1")}, get("/?%20user%20id=1"), 1},
		{"a deny of a name that PHP reads, with a bracket", []paddock.NetworkRule{all, query(true, "user_id", "1")}, get("/?user%5bid=1"), 1},
		{"a deny of a name that PHP reads, encoded twice", []paddock.NetworkRule{all, query(true, "user_id", "1")}, get("/?user%252eid=1"), 1},
		{"a deny of a name that PHP reads, up to a NUL", []paddock.NetworkRule{all, query(true, "user_id", "1")}, get("/?user_id%00x=1"), 1},
		{"a deny of a name with a dot", []paddock.NetworkRule{all, query(true, "user.id", "1")}, get("/?user_id=1"), 1},
		{"a deny of a list", []paddock.NetworkRule{all, query(true, "id", "1")}, get("/?id[]=1&id[]=2"), 1},
		{"a deny of a name in capitals", []paddock.NetworkRule{all, query(true, "id", "1")}, get("/?ID=1"), 1},
		{"a deny of a similar name with another value", []paddock.NetworkRule{all, query(true, "user_id", "1")}, get("/?user.id=2"), 0},
		{"a deny of a shorter name", []paddock.NetworkRule{all, query(true, "user", "1")}, get("/?user.id=1"), 0},
		{"a name that PHP reads alone", []paddock.NetworkRule{query(false, "user_id", "1")}, get("/?user.id=1"), -1},
		{"a name, and one that PHP reads as it", []paddock.NetworkRule{query(false, "user_id", "1")}, get("/?user_id=1&user.id=2"), -1},
		{"a name, and one that PHP reads as it with the same value", []paddock.NetworkRule{query(false, "user_id", "1")}, get("/?user_id=1&user.id=1"), 0},
		{"a name, and a list of it", []paddock.NetworkRule{query(false, "id", "1")}, get("/?id=1&id[]=2"), -1},
		{"a deny of a method, and a trailer that may be one", []paddock.NetworkRule{all, methods(true, "DELETE")}, trails("X-Http_Method-Override"), 1},
		{"a method, and a trailer that may be another", []paddock.NetworkRule{methods(false, "GET")}, trails("X-Http-Method"), -1},
		{"a deny of a path, and a trailer that may be one", []paddock.NetworkRule{all, paths(true, "/x")}, trails("X-Original-Url"), 1},
		{"a path, and a trailer that may be another", []paddock.NetworkRule{paths(false, "/")}, trails("X-Rewrite-Url"), -1},
		{"a deny of a query, and a trailer that may be one", []paddock.NetworkRule{all, query(true, "q", "1")}, trails("X-Original-Url"), 1},
		{"a deny of a header, and a trailer that may be it", []paddock.NetworkRule{all, header(true, "X-Team", "red")}, trails("X_Team"), 1},
		{"a header, and a trailer that may be another", []paddock.NetworkRule{header(false, "X-Team", "red")}, trails("X-Team", "X-Team", "red"), -1},
		{"a deny of all that, and another trailer", []paddock.NetworkRule{all, header(true, "X-Team", "red"), methods(true, "DELETE"), paths(true, "/x")}, trails("X-Sum"), 0},
		{"a deny of a query in a header", []paddock.NetworkRule{all, query(true, "q", "2")}, method("GET", "X-Original-Url", "/x?q=2"), 1},
		{"a deny of a query in a header, encoded twice", []paddock.NetworkRule{all, query(true, "q", "a")}, method("GET", "X-Rewrite-Url", "/x?q=%2561"), 1},
		{"a deny of another query than that in a header", []paddock.NetworkRule{all, query(true, "q", "2")}, method("GET", "X-Original-Url", "/x?q=1"), 0},
		{"a deny of a query before a fragment in a header", []paddock.NetworkRule{all, query(true, "q", "2")}, method("GET", "X-Original-Url", "/x?q=2#y"), 1},
		{"a deny of a query, and a path that nobody understands", []paddock.NetworkRule{all, query(true, "q", "2")}, get("/x%00%3fq=2"), 1},
		{"a deny of a query, and no path", []paddock.NetworkRule{all, query(true, "q", "2")}, Request{Scheme: "https", Method: "OPTIONS", Path: "*"}, 0},
		{"a deny and a query in a header that nobody understands", []paddock.NetworkRule{all, query(true, "q", "2")}, method("GET", "X-Original-Url", "/x?q=2;r"), 1},
		{"a deny of a query, and a header that is no path", []paddock.NetworkRule{all, query(true, "q", "2")}, method("GET", "X-Original-Url", "https://b.example/x?q=2"), 1},
		{"a deny of a query behind an encoded question mark", []paddock.NetworkRule{all, query(true, "q", "2")}, get("/x%3fq=2"), 1},
		{"an allow of a query, and another in a header", []paddock.NetworkRule{query(false, "q", "1")}, asked("/?q=1", "X-Original-Url", "/?q=2"), -1},
		{"an allow of a query, and none in a header", []paddock.NetworkRule{query(false, "q", "1")}, asked("/?q=1", "X-Original-Url", "/"), -1},
		{"an allow of a query, and the same in a header", []paddock.NetworkRule{query(false, "q", "1")}, asked("/?q=1", "X-Original-Url", "/y?r=3&q=1"), 0},
		{"an allow of a query, and another behind an encoded question mark", []paddock.NetworkRule{query(false, "q", "1")}, get("/x%3fq=2?q=1"), -1},

		{"a header", []paddock.NetworkRule{header(false, "x-a", "1")}, method("GET", "X-A", "1"), 0},
		{"a header in other letters", []paddock.NetworkRule{header(false, "X-A", "1")}, method("GET", "x-a", "1"), 0},
		{"two values of a header", []paddock.NetworkRule{header(false, "X-A", "1")}, method("GET", "X-A", "1", "x-a", "2"), -1},
		{"a header that is missing", []paddock.NetworkRule{header(false, "X-A", "*")}, method("GET"), -1},
		{"a deny of a header", []paddock.NetworkRule{all, header(true, "X-A", "2")}, method("GET", "X-A", "1", "x-a", "2"), 1},
		{"a deny of a header in a list", []paddock.NetworkRule{all, header(true, "X-A", "2")}, method("GET", "X-A", "1, 2"), 1},
		{"a deny of another header", []paddock.NetworkRule{all, header(true, "X-A", "2")}, method("GET", "X-A", "1"), 0},

		{"a deny of a header by a name with other signs", []paddock.NetworkRule{all, header(true, "X-A", "2")}, method("GET", "x_a", "2"), 1},
		{"a deny of a header by a name of another length", []paddock.NetworkRule{all, header(true, "X-A", "2")}, method("GET", "x-ab", "2"), 0},
		{"a header by a name with other signs alone", []paddock.NetworkRule{header(false, "X-A", "1")}, method("GET", "X_A", "1"), -1},
		{"a header, and another value by a name with other signs", []paddock.NetworkRule{header(false, "X-A", "1")}, method("GET", "X-A", "1", "X_A", "2"), -1},
		{"a header, and the same by a name with other signs", []paddock.NetworkRule{header(false, "X-A", "1")}, method("GET", "X-A", "1", "X_A", "1"), 0},

		{"the first allow that is met", []paddock.NetworkRule{paths(false, "/a"), paths(false, "/b"), all}, get("/b"), 1},
		{"what none meets", []paddock.NetworkRule{paths(false, "/a"), paths(false, "/b"), all}, get("/c"), 2},
		{"a deny behind the allow that is met", []paddock.NetworkRule{paths(false, "/**"), methods(true, "GET")}, get("/a"), 1},
		{"a deny that is met in part", []paddock.NetworkRule{all, rule(func(nr *paddock.NetworkRule) {
			nr.Deny, nr.Methods, nr.Paths = true, []string{"PUT"}, []string{"/a"}
		})}, get("/a"), 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := list(t, tc.rules...)
			v := r.Request(flow(t, host), tc.q)
			if v.Rule != tc.want || v.Allow != (tc.want >= 0 && !r.At(tc.want).Deny) || v.Look {
				t.Errorf("%+v; want rule %d", v, tc.want)
			}
			if v.Reason == "" || (v.Hint == "") != v.Allow {
				t.Errorf("the words are missing or too many: %+v", v)
			}
		})
	}
}

func TestQueriesInHeadersAreBounded(t *testing.T) {
	q := get("/")
	q.Header = map[string][]string{}
	for i := range 1000 {
		q.Header["X-Original-Url"] = append(q.Header["X-Original-Url"], "/?q="+strconv.Itoa(i))
	}
	if v := viewsOf(q); !v.unclear || len(v.queries) != maxQueries {
		t.Errorf("%d views of the query, unclear: %v", len(v.queries), v.unclear)
	}
}

func TestARequestIsOfItsFlow(t *testing.T) {
	r := list(t, allow("a.example"), deny("b.example"), paddock.NetworkRule{Host: "*", UDP: true})
	for _, to := range []string{"a.example:22", "b.example", "c.example", "a.example:443/udp"} {
		if v := r.Request(flow(t, to), get("/")); v.Allow {
			t.Errorf("%s: %+v", to, v)
		}
	}
}

func TestAReasonNamesTheRequest(t *testing.T) {
	r := list(t, paddock.NetworkRule{Host: "a.example", Methods: []string{"GET"}, Paths: []string{"/a"}}, paddock.NetworkRule{Deny: true, Host: "*", Scheme: "http", Query: map[string]string{"q": "*"}})
	v := r.Request(flow(t, "a.example"), get("/x\n"))
	if want := `no rule allows "GET" "/x\n" of a.example:443`; v.Reason != want {
		t.Errorf("%q", v.Reason)
	}
	v = r.Request(flow(t, "a.example"), get("/a"))
	if want := "rules[0] allows GET /a of a.example"; v.Reason != want {
		t.Errorf("%q", v.Reason)
	}
	q := get("/a?q=1")
	q.Scheme = "http"
	v = r.Request(flow(t, "a.example"), q)
	if want := "rules[1] denies ?q of http://*"; v.Reason != want {
		t.Errorf("%q", v.Reason)
	}
}

func FuzzParsePattern(f *testing.F) {
	for _, s := range []string{"example.com.", "*.a.b", "10.0.0.0/8", "[::1]", "*", "::/0", "*.0x1", "::ffff:10.0.0.0/104"} {
		f.Add(s, "a.example.com")
	}
	f.Fuzz(func(t *testing.T, s, name string) {
		p, err := ParsePattern(s)
		if err != nil {
			return
		}
		if again, err := ParsePattern(p.String()); err != nil || again != p {
			t.Fatalf("%q gives %q, which gives %q, %v", s, p, again, err)
		}
		if !p.Covers(p) || !(Pattern{all: true}).Covers(p) {
			t.Fatalf("%q does not cover itself, or is not covered by all", s)
		}
		h, err := ParseHost(name)
		if err != nil {
			return
		}
		// A wildcard matches only names below it, by labels.
		if suffix, ok := p.Suffix(); ok && p.Match(h) {
			have, want := strings.Split(h.String(), "."), strings.Split(suffix, ".")
			if len(have) <= len(want) || !slices.Equal(have[len(have)-len(want):], want) {
				t.Fatalf("%q matches %q", p, h)
			}
		}
		one, err := ParsePattern(h.String())
		if err != nil || p.Covers(one) != p.Match(h) {
			t.Fatalf("%q covers and matches %q differently: %v", p, h, err)
		}
	})
}

func FuzzPath(f *testing.F) {
	for _, s := range []string{"/a/b", "/a%2fb", "/%2e%2e/a", "/a;b/c", `/a\b`, "/%25%32%66", "/a%00", "//a/./b/", "/é%C3%A9", "/..;/x", "/%3f"} {
		f.Add("/a/**", s)
		f.Add("/*/b*", s)
	}
	f.Fuzz(func(t *testing.T, pattern, raw string) {
		views := pathViews(raw)
		if len(views) > 200 {
			t.Fatalf("%q has %d views", raw, len(views))
		}
		p, err := parsePath(pattern, false)
		if err != nil {
			return
		}
		patterns := []pathPattern{p}
		allowed, denied := matchPaths(patterns, views, false), matchPaths(patterns, views, true)
		if allowed && !denied {
			t.Fatalf("%q is allowed by %q and would not be denied by it", raw, pattern)
		}
		// The interpretation of a plain server is one of the views, so it never matches a
		// pattern that the deny does not match.
		if plain, ok := decode(raw, ""); ok && strings.HasPrefix(raw, "/") {
			clean := path.Clean(plain)
			if (p.re.MatchString(plain) || p.re.MatchString(clean)) && !denied {
				t.Fatalf("%q is %q, which %q matches and does not deny", raw, clean, pattern)
			}
			if allowed && !p.re.MatchString(plain) {
				t.Fatalf("%q is %q, which %q allows and does not match", raw, plain, pattern)
			}
		}
		// A pattern without stars matches only its own text.
		if !strings.Contains(pattern, "*") && p.re.MatchString(raw) != (raw == pattern) {
			t.Fatalf("%q matches %q", pattern, raw)
		}
	})
}

// An attacker writes a denied path in every form that some server decodes.
func FuzzDeniedPathStaysDenied(f *testing.F) {
	f.Add("admin", []byte{0, 1, 2, 3, 4})
	f.Add("x/y", []byte{5, 4, 3, 2, 1, 0})
	plain := regexp.MustCompile(`\A[a-z]+(/[a-z]+)*\z`)
	f.Fuzz(func(t *testing.T, text string, choices []byte) {
		if !plain.MatchString(text) || len(text) > 100 {
			return
		}
		p, err := parsePath("/"+text, false)
		if err != nil {
			t.Fatal(err)
		}
		const hex = "0123456789abcdef"
		raw := "/"
		for i := range len(text) {
			c := byte(0)
			if i < len(choices) {
				c = choices[i]
			}
			one := text[i : i+1]
			switch {
			case c%6 == 1:
				one = "%" + string([]byte{hex[text[i]>>4], hex[text[i]&15]})
			case c%6 == 2:
				one = "%25" + string([]byte{hex[text[i]>>4], hex[text[i]&15]})
			case c%6 == 3 && one == "/":
				one = "/./"
			case c%6 == 4 && one == "/":
				one = "%5c"
			case c%6 == 5 && one == "/":
				one = ";v=1//z/%2e%2e/"
			}
			raw += one
		}
		if !matchPaths([]pathPattern{p}, pathViews(raw), true) {
			t.Fatalf("%q is not denied by %q: %q", raw, p.text, pathViews(raw))
		}
	})
}
