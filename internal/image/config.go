package image

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// MaxVariables is how many variables, and how many texts of another kind, a configuration may have.
const MaxVariables = 2000

// Bounds of a configuration.
const (
	maxTexts = 256 << 10 // bytes of all texts of one kind
	maxWord  = 256       // bytes of a user, a port or the like
)

// ParseConfig reads the configuration of an image, a JSON object of the OCI image specification. An image is made by
// strangers: what no process could have is [paddock.Invalid], and what is too much [paddock.Exhausted].
func ParseConfig(data []byte) (Config, error) {
	var raw struct {
		Config struct {
			Env          []string
			WorkingDir   string
			User         string
			Entrypoint   []string
			Cmd          []string
			Shell        []string
			Labels       map[string]string
			ExposedPorts map[string]struct{}
			Volumes      map[string]struct{}
		} `json:"config"`
	}
	if err := json.Unmarshal(data, &raw); err != nil {
		return Config{}, fmt.Errorf("the image's configuration cannot be read: %w", paddock.Invalid)
	}
	r := &raw.Config
	c := Config{
		User: r.User, Entrypoint: r.Entrypoint, Command: r.Cmd, Shell: r.Shell, Labels: r.Labels,
		Ports: slices.Sorted(maps.Keys(r.ExposedPorts)), Volumes: slices.Sorted(maps.Keys(r.Volumes)),
	}
	for _, v := range r.Env {
		if name, _, ok := strings.Cut(v, "="); ok && name != "" { // Docker drops others too
			c.Env = append(c.Env, v)
		}
	}
	if r.WorkingDir != "" {
		c.Dir = path.Clean("/" + r.WorkingDir)
	}
	labels := make([]string, 0, 2*len(c.Labels))
	for k, v := range c.Labels {
		labels = append(labels, k, v)
	}
	for _, t := range []struct {
		what  string
		texts []string
	}{
		{"environment", c.Env}, {"working directory", []string{c.Dir}}, {"entrypoint", c.Entrypoint}, {"command", c.Command},
		{"shell", c.Shell}, {"labels", labels}, {"ports", c.Ports}, {"volumes", c.Volumes},
	} {
		if err := bounded(t.what, t.texts); err != nil {
			return Config{}, err
		}
	}
	return c, goodUser(c.User)
}

func bounded(what string, texts []string) error {
	total := 0
	for _, t := range texts {
		if strings.ContainsRune(t, 0) {
			return fmt.Errorf("the image's configuration has a NUL in its %s: %w", what, paddock.Invalid)
		}
		total += len(t)
	}
	if len(texts) > MaxVariables || total > maxTexts {
		return fmt.Errorf("the image's configuration has more than %d texts or %d KiB in its %s: %w", MaxVariables, maxTexts>>10, what, paddock.Exhausted)
	}
	return nil
}

// goodUser checks that a user is a name or a number, with or without a group.
func goodUser(text string) error {
	user, group, both := strings.Cut(text, ":")
	for _, name := range []string{user, group} {
		if len(name) > maxWord || strings.ContainsAny(name, ":/\n\t \x00") {
			return fmt.Errorf("the user of the image's configuration is no USER or USER:GROUP: %w", paddock.Invalid)
		}
	}
	if both && (user == "" || group == "") {
		return fmt.Errorf("the user of the image's configuration is no USER or USER:GROUP: %w", paddock.Invalid)
	}
	return nil
}
