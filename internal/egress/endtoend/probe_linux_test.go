package endtoend

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"
	"golang.org/x/net/websocket"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Variables between a test and the probe, which is this program in a box.
const (
	probeVariable = "PADDOCK_TRIAL_PROBE"
	triesVariable = "PADDOCK_TRIAL_TRIES"
)

// probeMain does the task of a program in a box, and reports whether there was one.
func probeMain() bool {
	var err error
	switch os.Getenv(probeVariable) {
	case "":
		return false
	case "tries":
		err = tryAll(os.Getenv(triesVariable))
	case "get":
		err = get(os.Args[1], http.ProxyFromEnvironment)
	case "get directly": // ignores proxies in the environment
		err = get(os.Args[1], nil)
	case "websocket":
		err = talk(os.Args[1])
	case "grpc":
		err = call(os.Args[1])
	case "many":
		err = many(os.Args[1], os.Args[2])
	default:
		err = errors.New("no such probe")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(1)
	}
	return true
}

// briefly bounds one try. Denials are immediate.
const briefly = 20 * time.Second

// trust trusts the box's roots and the world.
func trust() *tls.Config {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if ca, err := os.ReadFile(inside + "/ca.pem"); err == nil {
		pool.AppendCertsFromPEM(ca)
	}
	return &tls.Config{RootCAs: pool}
}

func tryAll(text string) error {
	var tries []try
	if err := json.Unmarshal([]byte(text), &tries); err != nil {
		return err
	}
	enc := json.NewEncoder(os.Stdout)
	for _, y := range tries {
		began := time.Now()
		o := y.do()
		o.Name = y.Name
		if took := time.Since(began); o.Verdict == denied && took > briefly/2 {
			o.Verdict, o.Text = hangs, fmt.Sprintf("denied after %v: %s", took, o.Text)
		}
		if err := enc.Encode(o); err != nil {
			return err
		}
	}
	return nil
}

func (y try) do() outcome {
	ctx, cancel := context.WithTimeout(context.Background(), briefly)
	defer cancel()
	address := net.JoinHostPort(y.Host, strconv.Itoa(int(y.Port)))
	switch y.Proto {
	case "tcp":
		return greets(ctx, address)
	case "udp":
		return replies(ctx, address)
	case "dns":
		list, err := net.DefaultResolver.LookupHost(ctx, y.Host)
		if err != nil {
			return failed(err)
		}
		return outcome{Verdict: allowed, Text: strings.Join(list, " ")}
	}
	return y.request(ctx)
}

// failed returns the verdict of an error.
func failed(err error) outcome {
	o := outcome{Verdict: denied, Text: err.Error()}
	var timeout net.Error
	var unknown x509.UnknownAuthorityError
	var invalid x509.CertificateInvalidError
	var name x509.HostnameError
	switch {
	case errors.As(err, &unknown), errors.As(err, &invalid), errors.As(err, &name):
		o.Verdict = distrusted
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		o.Verdict = hangs
	}
	return o
}

func (y try) request(ctx context.Context) outcome {
	r, err := http.NewRequestWithContext(ctx, y.method(), y.url(), nil)
	if err != nil {
		return outcome{Verdict: odd, Text: err.Error()}
	}
	for name, value := range y.Header {
		if variable, ok := strings.CutPrefix(value, "$"); ok {
			value = os.Getenv(variable)
		}
		r.Header.Set(name, value)
	}
	transport := &http.Transport{TLSClientConfig: trust(), ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	a, err := transport.RoundTrip(r)
	if err != nil {
		return failed(err)
	}
	defer a.Body.Close()
	body, err := io.ReadAll(io.LimitReader(a.Body, 1<<20))
	if err != nil {
		return failed(err)
	}
	v, s := judge(a.StatusCode, a.Header, body)
	return outcome{Verdict: v, Seen: s, Text: fmt.Sprintf("%s %s %s", a.Proto, a.Status, body)}
}

// greets connects to the echo server.
func greets(ctx context.Context, address string) outcome {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return failed(err)
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	_ = c.SetDeadline(deadline)
	have := make([]byte, len(greeting))
	if _, err := io.ReadFull(c, have); err != nil {
		return failed(err)
	}
	if string(have) != greeting {
		return outcome{Verdict: odd, Text: fmt.Sprintf("it said %q", have)}
	}
	return outcome{Verdict: allowed}
}

// replies sends datagrams until one is answered or refused.
func replies(ctx context.Context, address string) outcome {
	c, err := new(net.Dialer).DialContext(ctx, "udp", address)
	if err != nil {
		return failed(err)
	}
	defer c.Close()
	buf := make([]byte, 64)
	for ctx.Err() == nil {
		if _, err := c.Write([]byte("hello")); err != nil {
			return failed(err)
		}
		_ = c.SetReadDeadline(time.Now().Add(time.Second))
		n, err := c.Read(buf)
		switch {
		case err == nil && string(buf[:n]) == "trial hello":
			return outcome{Verdict: allowed}
		case err == nil:
			return outcome{Verdict: odd, Text: fmt.Sprintf("it said %q", buf[:n])}
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return failed(err)
		}
	}
	return outcome{Verdict: hangs}
}

// get prints the content of a URL.
func get(address string, proxy func(*http.Request) (*url.URL, error)) error {
	c := &http.Client{Timeout: briefly, Transport: &http.Transport{TLSClientConfig: trust(), Proxy: proxy, ForceAttemptHTTP2: true}}
	a, err := c.Get(address)
	if err != nil {
		return err
	}
	defer a.Body.Close()
	if a.StatusCode != http.StatusOK {
		return errors.New(a.Status)
	}
	_, err = io.Copy(os.Stdout, a.Body)
	return err
}

// talk sends a message over a WebSocket and prints the answer.
func talk(address string) error {
	config, err := websocket.NewConfig("wss"+strings.TrimPrefix(address, "https"), address)
	if err != nil {
		return err
	}
	config.TlsConfig = trust()
	c, err := websocket.DialConfig(config)
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(briefly))
	for _, text := range []string{"first", strings.Repeat("long", 50_000)} {
		if err := websocket.Message.Send(c, text); err != nil {
			return err
		}
		var have string
		if err := websocket.Message.Receive(c, &have); err != nil {
			return err
		}
		if have != text {
			return fmt.Errorf("said %d bytes, heard %d", len(text), len(have))
		}
	}
	fmt.Println("heard all")
	return nil
}

// call uses gRPC in both directions at the same time.
func call(base string) error {
	ctx, cancel := context.WithTimeout(context.Background(), briefly)
	defer cancel()
	hc := &http.Client{Transport: &http.Transport{TLSClientConfig: trust(), ForceAttemptHTTP2: true}}
	c := connect.NewClient[wrapperspb.StringValue, wrapperspb.StringValue](hc, base+sayProcedure, connect.WithGRPC())
	s := c.CallBidiStream(ctx)
	for i := range 5 {
		if err := s.Send(wrapperspb.String(strconv.Itoa(i))); err != nil {
			return err
		}
		m, err := s.Receive()
		if err != nil {
			return err
		}
		fmt.Println(m.GetValue())
	}
	if err := s.CloseRequest(); err != nil {
		return err
	}
	if _, err := s.Receive(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("the end: %w", err)
	}
	fmt.Println("trailer", s.ResponseTrailer().Get("Said"))
	return s.CloseResponse()
}

// many opens a number of connections to the echo server. When all are open, it sends
// something on each and waits for all answers.
func many(address, number string) error {
	n, err := strconv.Atoi(number)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience/2)
	defer cancel()
	deadline, _ := ctx.Deadline()
	open := make([]net.Conn, n)
	began := time.Now()
	err = each(n, func(i int) error {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		if err != nil {
			return err
		}
		open[i] = c
		return c.SetDeadline(deadline)
	})
	if err != nil {
		return fmt.Errorf("open: %w", err)
	}
	opened := time.Since(began)
	err = each(n, func(i int) error {
		if _, err := fmt.Fprintf(open[i], "connection %04d\n", i); err != nil {
			return err
		}
		want := fmt.Sprintf("%sconnection %04d\n", greeting, i)
		have := make([]byte, len(want))
		if _, err := io.ReadFull(open[i], have); err != nil {
			return err
		}
		if string(have) != want {
			return fmt.Errorf("it said %q", have)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("talk: %w", err)
	}
	fmt.Println("all answered", opened, time.Since(began)-opened)
	return nil
}

// each calls f for all numbers below n in parallel and waits.
func each(n int, f func(int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	failed := slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(failed) == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d, the first: %w", len(failed), n, failed[0])
}
