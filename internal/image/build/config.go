package build

import (
	"encoding/json"
	"fmt"
	"maps"
	"runtime"

	"github.com/paddock-sandbox/paddock"
)

const maxHistory = 1000 // entries

// A document is the configuration of an image, as the OCI image specification has it. It has no times, so that the same
// steps make the same image.
type document struct {
	Architecture string                     `json:"architecture"`
	OS           string                     `json:"os"`
	Config       map[string]json.RawMessage `json:"config,omitempty"`
	RootFS       rootFS                     `json:"rootfs"`
	History      []json.RawMessage          `json:"history,omitempty"`
}

type rootFS struct {
	Type    string   `json:"type"`
	DiffIDs []string `json:"diff_ids"`
}

// document writes the configuration of the image. What the image that it began with says beside is kept.
func (m *made) document() ([]byte, error) {
	config := maps.Clone(m.raw)
	if config == nil {
		config = map[string]json.RawMessage{}
	}
	c := m.config
	for _, part := range []struct {
		name  string
		value any
		has   bool
	}{
		{"Env", c.Env, len(c.Env) > 0}, {"WorkingDir", c.Dir, c.Dir != ""}, {"User", c.User, c.User != ""},
		{"Entrypoint", c.Entrypoint, len(c.Entrypoint) > 0}, {"Cmd", c.Command, len(c.Command) > 0}, {"Shell", c.Shell, len(c.Shell) > 0},
		{"Labels", c.Labels, len(c.Labels) > 0}, {"ExposedPorts", set(c.Ports), len(c.Ports) > 0}, {"Volumes", set(c.Volumes), len(c.Volumes) > 0},
	} {
		delete(config, part.name)
		if !part.has {
			continue
		}
		data, err := json.Marshal(part.value)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", err, paddock.Internal)
		}
		config[part.name] = data
	}
	d := document{Architecture: runtime.GOARCH, OS: "linux", Config: config, RootFS: rootFS{"layers", m.content}, History: m.history}
	if layersOf(d.History) != len(m.layers) || len(d.History) > maxHistory {
		d.History = nil // one that tells of other layers is worse than none
	}
	if d.RootFS.DiffIDs == nil {
		d.RootFS.DiffIDs = []string{}
	}
	data, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", err, paddock.Internal)
	}
	return data, nil
}

func set(list []string) map[string]struct{} {
	all := map[string]struct{}{}
	for _, s := range list {
		all[s] = struct{}{}
	}
	return all
}

// layersOf counts the layers of which a history tells.
func layersOf(history []json.RawMessage) int {
	n := 0
	for _, data := range history {
		var entry struct {
			Empty bool `json:"empty_layer"`
		}
		if json.Unmarshal(data, &entry) == nil && !entry.Empty {
			n++
		}
	}
	return n
}

// did notes an instruction in the history of the image.
func (m *made) did(text string, empty bool) {
	entry := struct {
		By    string `json:"created_by"`
		Empty bool   `json:"empty_layer,omitempty"`
	}{short(text), empty}
	if data, err := json.Marshal(entry); err == nil && len(m.history) < maxHistory {
		m.history = append(m.history, data)
	}
}
