//go:build linux

package main

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
	"os"
	"strconv"
	"sync"
	"time"
)

// Variables of the client, which is this program in a sandbox, and on the host for
// comparison.
const (
	clientVariable = "PADDOCK_BENCH_CLIENT" // what it does
	rootsVariable  = "PADDOCK_BENCH_ROOTS"  // a file of certificates that it trusts too
	atVariable     = "PADDOCK_BENCH_AT"     // an address that all names have; empty asks
)

// client does what the environment asks for, and tells whether that was anything.
func client() bool {
	do := os.Getenv(clientVariable)
	if do == "" {
		return false
	}
	took, err := errand(do, os.Args[1], os.Args[2])
	if err == nil {
		err = json.NewEncoder(os.Stdout).Encode(took)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "client:", err)
		os.Exit(1)
	}
	return true
}

// errand does one thing with a server and tells how long each time took.
func errand(do, target, number string) (samples, error) {
	n, err := strconv.Atoi(number)
	if err != nil {
		return nil, err
	}
	switch do {
	case "requests":
		return requests(target, n)
	case "download":
		return download(target, int64(n))
	case "connections":
		return connections(target, n)
	}
	return nil, errors.New("no such errand")
}

// dial connects where the environment says names lead.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	if at := os.Getenv(atVariable); at != "" {
		_, port, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		address = net.JoinHostPort(at, port)
	}
	return new(net.Dialer).DialContext(ctx, network, address)
}

func transport() (*http.Transport, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(os.Getenv(rootsVariable))
	if err != nil {
		return nil, err
	}
	pool.AppendCertsFromPEM(data)
	return &http.Transport{DialContext: dial, TLSClientConfig: &tls.Config{RootCAs: pool}, DisableKeepAlives: true}, nil
}

// requests makes n requests, each on a connection of its own.
func requests(url string, n int) (samples, error) {
	t, err := transport()
	if err != nil {
		return nil, err
	}
	var took samples
	for i := range warmUp + n {
		began := time.Now()
		size, err := fetch(t, url)
		if err != nil {
			return nil, fmt.Errorf("after %d requests: %w", i, err)
		}
		if size == 0 {
			return nil, errors.New("an empty answer")
		}
		if i >= warmUp {
			took = append(took, time.Since(began))
		}
	}
	return took, nil
}

// download gets size bytes once.
func download(url string, size int64) (samples, error) {
	t, err := transport()
	if err != nil {
		return nil, err
	}
	began := time.Now()
	got, err := fetch(t, fmt.Sprintf("%s?size=%d", url, size))
	if err != nil {
		return nil, err
	}
	if got != size {
		return nil, fmt.Errorf("%d bytes of %d", got, size)
	}
	return samples{time.Since(began)}, nil
}

// fetch reads an answer and tells its length.
func fetch(t *http.Transport, url string) (int64, error) {
	a, err := (&http.Client{Transport: t}).Get(url)
	if err != nil {
		return 0, err
	}
	defer a.Body.Close()
	n, err := io.CopyBuffer(struct{ io.Writer }{io.Discard}, a.Body, make([]byte, 256<<10))
	if err == nil && a.StatusCode != http.StatusOK {
		err = errors.New(a.Status)
	}
	return n, err
}

// connections opens n connections to an echo server, says something on each when
// all are there, and waits for all the answers.
func connections(address string, n int) (samples, error) {
	began := time.Now()
	open := make([]net.Conn, n)
	defer func() {
		for _, c := range open {
			if c != nil {
				c.Close()
			}
		}
	}()
	err := each(n, func(i int) (err error) {
		open[i], err = dial(context.Background(), "tcp", address)
		return err
	})
	if err != nil {
		return nil, err
	}
	err = each(n, func(i int) error {
		text := fmt.Sprintf("connection %d\n", i)
		if _, err := io.WriteString(open[i], text); err != nil {
			return err
		}
		have := make([]byte, len(text))
		if _, err := io.ReadFull(open[i], have); err != nil {
			return err
		}
		if string(have) != text {
			return fmt.Errorf("%q came back as %q", text, have)
		}
		return nil
	})
	return samples{time.Since(began)}, err
}

// each calls f for all numbers below n at once, and waits.
func each(n int, f func(int) error) error {
	errs := make([]error, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { errs[i] = f(i) })
	}
	wg.Wait()
	bad := 0
	var first error
	for _, err := range errs {
		if err != nil {
			bad++
			first = err
		}
	}
	if bad == 0 {
		return nil
	}
	return fmt.Errorf("%d of %d, one of them: %w", bad, n, first)
}
