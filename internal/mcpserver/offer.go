package mcpserver

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
)

// An Offer is what a user lets agents have. An agent can ask for less.
type Offer struct {
	// Spec is what every sandbox has: its root, limits and files, and all hosts and secrets that can be asked for.
	Spec paddock.Spec

	// Directory mounts the directory that the user works in, writable. Nil offers none.
	Directory []paddock.Mount

	// Undo is how sandboxes with the writable directory record their steps.
	Undo paddock.UndoMode

	// AnyHost lets sandboxes have the hosts that the agent names. The rules of the server decide.
	AnyHost bool
}

// Ways to show the directory.
const (
	shownNone    = "none"
	shownRead    = "read"
	shownOverlay = "overlay"
	shownWrite   = "write"
)

// A wish is what an agent asks for.
type wish struct {
	name      string
	directory string
	hosts     []string // nil is all that are offered
	secrets   []string
}

// spec gives the sandbox that an agent asks for. What is not offered is refused, with what there is.
func (o Offer) spec(w wish) (paddock.Spec, error) {
	s := o.Spec
	s.ID = paddock.ID(w.name)
	if w.name != "" && !s.ID.Valid() {
		return s, fmt.Errorf("name %q: it has 1 to 63 of a-z, 0-9 and dashes, and no dash at either end: %w", clip(w.name, 80), paddock.Invalid)
	}
	s.Mounts, s.Labels = slices.Clone(s.Mounts), maps.Clone(s.Labels)
	if s.Labels == nil {
		s.Labels = map[string]string{}
	}
	if err := o.show(&s, w.directory); err != nil {
		return s, err
	}
	if err := o.reach(&s.Policy.Network, w); err != nil {
		return s, err
	}
	if w.hosts != nil {
		s.Labels[labelHosts] = strings.Join(w.hosts, ",")
	}
	if len(w.secrets) > 0 {
		s.Labels[labelSecrets] = strings.Join(w.secrets, ",")
	}
	return s, nil
}

// again gives the wish that a sandbox was made by.
func again(labels map[string]string) wish {
	w := wish{directory: labels[labelDirectory]}
	if hosts, ok := labels[labelHosts]; ok {
		w.hosts = split(hosts)
	}
	w.secrets = split(labels[labelSecrets])
	return w
}

func split(text string) []string {
	if text == "" {
		return []string{}
	}
	return strings.Split(text, ",")
}

// show mounts the directory.
func (o Offer) show(s *paddock.Spec, how string) error {
	switch how {
	case "", shownNone:
		return nil
	case shownRead, shownOverlay, shownWrite:
	default:
		return fmt.Errorf("directory %q: it is none, read, overlay or write: %w", clip(how, 80), paddock.Invalid)
	}
	if len(o.Directory) == 0 {
		return fmt.Errorf("no directory is offered here; file_write puts files into a sandbox: %w", paddock.Denied)
	}
	for _, m := range o.Directory {
		m.Write, m.Overlay = how == shownWrite, how == shownOverlay
		s.Mounts = append(s.Mounts, m)
	}
	s.Labels[labelDirectory] = how
	if s.Dir == "" {
		s.Dir = o.Directory[0].Source
	}
	if how == shownWrite {
		s.Undo = o.Undo
	}
	return nil
}

// reach keeps of the network what is asked for.
func (o Offer) reach(n *paddock.NetworkPolicy, w wish) error {
	all := n.Secrets
	n.Secrets = nil
	for _, name := range w.secrets {
		i := slices.IndexFunc(all, func(s paddock.Secret) bool { return s.Name == name })
		if i < 0 {
			return fmt.Errorf("there is no secret %q; %s: %w", clip(name, 80), offered("secrets", secretNames(all)), paddock.Denied)
		}
		if !slices.ContainsFunc(n.Secrets, func(s paddock.Secret) bool { return s.Name == name }) {
			n.Secrets = append(n.Secrets, all[i])
		}
	}
	if w.hosts == nil {
		return nil
	}
	if o.AnyHost {
		n.Mode, n.Rules = paddock.NetworkList, nil
		for _, host := range w.hosts {
			n.Rules = append(n.Rules, paddock.NetworkRule{Host: host})
		}
		if len(w.hosts) == 0 {
			n.Mode = paddock.NetworkNone
		}
		return nil
	}
	return o.narrow(n, w.hosts)
}

// narrow keeps the rules of these hosts, and every rule that denies.
func (o Offer) narrow(n *paddock.NetworkPolicy, hosts []string) error {
	for _, host := range hosts {
		if n.Mode != paddock.NetworkList || !slices.ContainsFunc(n.Rules, func(r paddock.NetworkRule) bool { return !r.Deny && r.Host == host }) {
			return fmt.Errorf("the host %q is not offered; %s: %w", clip(host, 200), offered("hosts", o.hosts()), paddock.Denied)
		}
	}
	if len(hosts) == 0 {
		*n = paddock.NetworkPolicy{}
		return nil
	}
	n.Rules = slices.DeleteFunc(slices.Clone(n.Rules), func(r paddock.NetworkRule) bool { return !r.Deny && !slices.Contains(hosts, r.Host) })
	return nil
}

// hosts lists those that are offered.
func (o Offer) hosts() []string {
	var list []string
	for _, r := range o.Spec.Policy.Network.Rules {
		if !r.Deny && !slices.Contains(list, r.Host) {
			list = append(list, r.Host)
		}
	}
	return list
}

func secretNames(all []paddock.Secret) []string {
	var list []string
	for _, s := range all {
		list = append(list, s.Name)
	}
	return list
}

func offered(what string, list []string) string {
	if len(list) == 0 {
		return "no " + what + " are offered"
	}
	return what + " are " + enough(list, 30)
}

// enough joins the beginning of a list.
func enough(list []string, most int) string {
	if len(list) > most {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], ", "), len(list)-most)
	}
	return strings.Join(list, ", ")
}

// mark names the offer: who is offered the same may use what was kept. A wider offer than one's own is never reached by
// it. Values of secrets are not in it, so that a new value of a secret changes nothing.
func (o Offer) mark() string {
	spec := o.Spec
	spec.Policy.Network.Secrets = slices.Clone(spec.Policy.Network.Secrets)
	for i := range spec.Policy.Network.Secrets {
		spec.Policy.Network.Secrets[i].Value = ""
	}
	data, err := json.Marshal(struct {
		Spec      paddock.Spec
		Directory []paddock.Mount
		Undo      paddock.UndoMode
	}{spec, o.Directory, o.Undo})
	if err != nil {
		return "" // which no sandbox has
	}
	sum := sha256.Sum256(data)
	return "offer-" + hex.EncodeToString(sum[:16])
}
