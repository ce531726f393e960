package policy

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/egress/decide"
)

// checkSource reads where the value of a secret comes from. No error shows the
// text, which may be the value.
func checkSource(s string) error {
	kind, object, _ := strings.Cut(s, ":")
	switch kind {
	case "env":
		if err := checkName(object); err != nil {
			return errors.New("env: with what is not the name of a variable")
		}
	case "file":
		if err := checkPath(object); err != nil {
			return fmt.Errorf("file: with %w", err)
		}
	default:
		return errors.New(`neither "env:" nor "file:" begins it`)
	}
	return nil
}

// CheckSource checks the form of "env:VARIABLE" or "file:PATH", without reading the value. An error is Invalid and does
// not show the text.
func CheckSource(from string) error {
	if err := checkSource(from); err != nil {
		return fmt.Errorf("%w (%s): %w", err, sourceHint, paddock.Invalid)
	}
	return nil
}

// Value reads the value of a secret from "env:VARIABLE" or "file:PATH" by means of o. It drops one line break at the
// end of a file. A missing value is NotFound. No error holds the value.
func Value(from string, o Host) (string, error) {
	if err := CheckSource(from); err != nil {
		return "", err
	}
	kind, object, _ := strings.Cut(from, ":")
	if kind == "env" {
		if o.Env == nil {
			return "", fmt.Errorf("the variable %s: there is no environment here: %w", object, paddock.NotFound)
		}
		value, ok := o.Env(object)
		switch {
		case !ok:
			return "", fmt.Errorf("the variable %s is not set in your environment: %w", object, paddock.NotFound)
		case value == "":
			return "", fmt.Errorf("the variable %s is empty: %w", object, paddock.NotFound)
		}
		return value, nil
	}
	name, err := SourceFile(from, o)
	if err != nil {
		return "", fmt.Errorf("%w: %w", err, paddock.Invalid)
	}
	if o.Secret == nil {
		return "", fmt.Errorf("the file %s: files cannot be read here: %w", name, paddock.NotFound)
	}
	data, err := o.Secret(name, decide.MaxSecret+len("\r\n"))
	if err != nil {
		return "", fmt.Errorf("the file %s: %w", name, err)
	}
	value := strings.TrimSuffix(strings.TrimSuffix(string(data), "\n"), "\r")
	if value == "" {
		return "", fmt.Errorf("the file %s is empty: %w", name, paddock.NotFound)
	}
	return value, nil
}

// SourceFile returns the file that a value comes from; empty is that it comes from none.
func SourceFile(from string, o Host) (string, error) {
	path, isFile := strings.CutPrefix(from, "file:")
	if !isFile {
		return "", nil
	}
	return resolve(path, o.Home)
}

// SecretSources returns where the values of the secrets come from: "env:VARIABLE" or "file:PATH", in which "~" is not expanded.
func (f *File) SecretSources() []string { return slices.Clone(f.sources) }

// reveal puts the values into the secrets of a resolved file.
func (f *File) reveal(o Host) (problems []Problem) {
	f.Network.Secrets = slices.Clone(f.Network.Secrets)
	for i := range f.Network.Secrets {
		s := &f.Network.Secrets[i]
		value, err := Value(f.sources[i], o)
		if err != nil {
			problems = append(problems, f.problem("network.secrets."+s.Name+".from", withoutKind(err), ""))
			continue
		}
		s.Value = value
	}
	if len(problems) > 0 {
		return problems
	}
	return f.judge(f.Network)
}

// withoutKind gives what an error says, but for the kind, which a Problem's
// document has.
func withoutKind(err error) string {
	return strings.TrimSuffix(err.Error(), ": "+paddock.KindOf(err).Error())
}

// judge tells what is wrong with the network as a whole.
func (f *File) judge(n paddock.NetworkPolicy) []Problem {
	if n.Mode != paddock.NetworkList {
		return nil
	}
	_, err := decide.Compile(n)
	var e *decide.RuleError
	if !errors.As(err, &e) {
		return nil
	}
	switch e.Part {
	case "rules":
		return []Problem{f.problem(f.ruleKey(e.Index), e.Text, "")}
	case "secrets":
		return []Problem{f.problem("network.secrets."+n.Secrets[e.Index].Name, e.Text, "")}
	}
	return []Problem{f.problem("network", e.Text, "")}
}

// ruleKey gives the key of the rule that became one of Network.Rules.
func (f *File) ruleKey(i int) string {
	if i < len(f.origins) {
		i = f.origins[i]
	}
	return index("network.rules", i)
}

// unknown gives a policy whose secrets have some value, to ask what it decides
// and not to run.
func unknown(n paddock.NetworkPolicy) paddock.NetworkPolicy {
	n.Secrets = slices.Clone(n.Secrets)
	for i := range n.Secrets {
		n.Secrets[i].Value = "unknown"
	}
	return n
}
