package cli

import (
	"fmt"
	"net"
	"path/filepath"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/monitor"
	"github.com/paddock-sandbox/paddock/internal/packageregistry"
	"github.com/paddock-sandbox/paddock/internal/policy"
)

// registriesOf lists the hosts that the configuration of the caller's package clients names, but for what only files of the
// project name.
func registriesOf(p *plan) (hosts []string) {
	for _, g := range packageregistry.Read(packageregistry.Machine{Home: p.host.Home, Env: p.host.Env, Files: p.host.Files}) {
		for _, h := range g.Hosts {
			if name, _, err := net.SplitHostPort(h); err == nil {
				h = name
			}
			if !g.Project {
				hosts = append(hosts, h)
			}
		}
	}
	return hosts
}

// judgeOf makes the judge beside the rules. Nil is none.
func (a *App) judgeOf(s *policy.Monitor, p *plan) (monitor.Judge, error) {
	switch {
	case len(s.Command) > 0:
		return a.commandJudge(s, p)
	case s.URL != "":
		if err := monitor.CheckURL(s.URL); err != nil {
			return nil, WithHint(fmt.Errorf("url: %w", err), "an address such as https://monitor.example/judge, or http://127.0.0.1:8080")
		}
		key, err := a.monitorKey(s.Key, p)
		if err != nil {
			return nil, err
		}
		return monitor.NewURL(s.URL, key, nil)
	case s.Model != nil:
		return a.modelJudge(s.Model, p)
	}
	return nil, nil
}

func (a *App) monitorKey(from string, p *plan) (string, error) {
	if from == "" {
		return "", nil
	}
	key, err := policy.Value(from, p.host)
	if err != nil {
		return "", fmt.Errorf("key: %w", err)
	}
	return key, nil
}

func (a *App) modelJudge(s *policy.MonitorModel, p *plan) (monitor.Judge, error) {
	key, err := a.monitorKey(s.Key, p)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	o := monitor.ModelOptions{Interface: s.Interface, Name: s.Name, Key: key, Address: s.URL}
	if s.Prompt != "" {
		name := s.Prompt
		if rest, ok := strings.CutPrefix(name, "~/"); ok {
			name = filepath.Join(p.host.Home, rest)
		}
		if err := outOfReach(name, p); err != nil {
			return nil, fmt.Errorf("model: prompt: %w", err)
		}
		text, err := ReadDocument("the monitor's prompt", name)
		if err != nil {
			return nil, err
		}
		o.Prompt = string(text)
	}
	j, err := monitor.NewModel(o)
	if err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	return j, nil
}
