// Package gitlogin lets git in a box use the login that git on the host has, for the repositories that a workspace has as
// remotes, and nothing else. The box has a placeholder as password. When it sends a request of git to one of these
// repositories, the owner of the box asks `git credential fill` on the host, and the gateway puts the answer into that
// request.
//
// The workspace is hostile: what its configuration says is read by a strict parser, is never seen by git on the host, and
// chooses nothing but the names that are asked about.
package gitlogin

import (
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock/internal/egress/decide"
	"github.com/paddock-sandbox/paddock/internal/gitconfigcheck"
)

const (
	remotesMax = 32  // repositories of one workspace
	nameMax    = 200 // bytes of a repository's name, which people are asked about and must see whole
)

// A Remote is a repository that is reached by https.
type Remote struct {
	Host decide.Host
	Port uint16
	Path string // from "/", without ".git" at its end
	User string // of the URL; may be empty

	asked string // the path as it is written, which a helper may know it by
}

// String returns what people call the repository: HOST/PATH, with USER@ before it where the URL has one, because another
// user is another login.
func (r Remote) String() string {
	if r.User != "" {
		return r.User + "@" + r.host() + r.Path
	}
	return r.host() + r.Path
}

// host returns the host as it stands in a URL.
func (r Remote) host() string {
	name := r.Host.String()
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	if r.Port != 443 {
		name += fmt.Sprintf(":%d", r.Port)
	}
	return name
}

// paths returns the paths of the requests that git sends to the repository. Servers know it with and without ".git".
func (r Remote) paths() []string {
	var list []string
	for _, at := range []string{r.Path, r.Path + ".git"} {
		for _, below := range []string{"/info/refs", "/git-upload-pack", "/git-receive-pack", "/info/lfs/**"} {
			list = append(list, at+below)
		}
	}
	return list
}

// A Config is what a repository's configuration says of remotes and of who commits.
type Config struct {
	Remotes []Remote
	Named   bool // it says itself who commits
	Notes   []string
}

var (
	remotePath = regexp.MustCompile(`\A(/[A-Za-z0-9._~@+-]{1,100}){1,8}\z`)
	userName   = regexp.MustCompile(`\A[A-Za-z0-9._@+-]{1,100}\z`)
)

// Read reads the configuration of a repository. Of what it does not understand it makes a note, which is not safe for a
// terminal.
func Read(config []byte) Config {
	var c Config
	entries, err := gitconfigcheck.Parse(config)
	if err != nil {
		c.Notes = append(c.Notes, fmt.Sprintf("the remotes of this directory are not known: its .git/config %v", err))
		return c
	}
	for _, e := range entries {
		name := e.Section + "." + e.Key
		switch {
		case !e.HasSub && (name == "user.name" || name == "user.email"):
			c.Named = true
		case !e.HasSub || e.Section != "remote" || e.Key != "url" && e.Key != "pushurl":
		case !strings.HasPrefix(strings.ToLower(e.Value), "https:"):
		default:
			r, why := parse(e.Value)
			switch {
			case why != "":
				c.Notes = append(c.Notes, fmt.Sprintf("the remote %.60q is left out: %s", e.Sub, why))
			case slices.Contains(c.Remotes, r):
			case len(c.Remotes) == remotesMax:
				c.Notes = append(c.Notes, fmt.Sprintf("the remote %.60q is left out: there are more than %d", e.Sub, remotesMax))
			default:
				c.Remotes = append(c.Remotes, r)
			}
		}
	}
	return c
}

// parse reads the URL of a remote. It says why it is left out.
func parse(text string) (r Remote, why string) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "https" || u.Opaque != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return r, "its URL is not https://HOST/PATH"
	}
	if u.User != nil {
		if _, has := u.User.Password(); has {
			return r, "its URL has a password, which the sandbox sees"
		}
		if r.User = u.User.Username(); !userName.MatchString(r.User) {
			return r, "the user in its URL is not a plain name"
		}
	}
	r.asked = strings.TrimPrefix(u.Path, "/")
	r.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), ".git")
	if u.RawPath != "" || !remotePath.MatchString(r.Path) || path.Clean(r.Path) != r.Path {
		return r, "its path has other characters than letters, digits and . _ ~ @ + -"
	}
	name, port, err := decide.SplitPort(u.Host)
	if err == nil {
		r.Host, err = decide.ParseHost(name)
	}
	if err != nil {
		return r, "its host is not one"
	}
	if r.Port = port; port == 0 {
		r.Port = 443
	}
	if len(r.String()) > nameMax {
		return r, fmt.Sprintf("its name is longer than %d characters", nameMax)
	}
	return r, ""
}
