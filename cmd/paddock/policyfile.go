package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/policy"
)

// host gives what a policy needs to know of the caller. With an error it is
// good but for the working directory, which is not known then: where nothing
// is relative to it, it is not needed.
func (a *app) host() (policy.Host, error) {
	home, _ := a.lookup("HOME")
	h := policy.Host{Home: home, Env: a.lookup, Files: os.DirFS("/")}
	dir, err := a.dir()
	if err != nil {
		return h, withHint(fmt.Errorf("working directory: %w: %w", err, paddock.NotFound), "it may have been removed: change to another one")
	}
	h.Dir = dir
	return h, nil
}

func readPolicy(name string) (*policy.File, error) {
	data, err := readDocument("policy file", name)
	if err != nil {
		return nil, err
	}
	return policy.Read(name, data)
}

func readSRT(name string, o policy.Host) (*policy.File, error) {
	data, err := readDocument("settings file", name)
	if err != nil {
		return nil, err
	}
	return policy.ReadSRT(name, data, o)
}

// readDocument reads a file up to the bound of package policy, which refuses
// what is larger.
func readDocument(what, name string) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, withHint(fmt.Errorf("%s %s: there is no such file: %w", what, name, paddock.NotFound), "check the name")
		}
		return nil, fmt.Errorf("%s: %w: %w", what, err, paddock.Denied)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, policy.MaxDocument+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w: %w", what, err, paddock.Invalid)
	}
	return data, nil
}
