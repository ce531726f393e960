// Package language knows how a program that is one file of source runs in a sandbox: what has to be there, how its
// libraries are installed, and which image has all that. Each language has a recipe, a script for any POSIX shell, so that
// the same one serves the host's system and an image.
//
// The package is pure.
package language

import (
	"embed"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/policy"
)

//go:embed recipe
var recipes embed.FS

// Paths inside.
const (
	Top       = "/tmp/paddock-language"  // what recipes use
	Artifacts = "/tmp/paddock-artifacts" // files that are taken out
)

// Environment variables of a program.
const (
	ArtifactsVariable = "PADDOCK_ARTIFACTS" // the directory, if artifacts are taken
	StaysVariable     = "PADDOCK_STAYS"     // set if the program begins in the sandbox's own directory, and not in that of artifacts
)

// A Language is one that programs of a file may have.
type Language struct {
	Name    string
	Aliases []string
	Suffix  string   // of a program that comes from standard input
	Tools   []string // programs that run it
	Image   string   // has them
	Client  string   // the package client, as package packageregistry names it; empty if it reads none

	Packages string // what --with takes, in words; empty if it takes nothing

	recipe   string
	packages *regexp.Regexp
	plots    string            // file of recipes that a plot needs
	env      map[string]string // with artifacts
}

// packageName is how package clients call what they install, with a version, and without an option among them.
const packageName = `[A-Za-z0-9@][A-Za-z0-9@._/+~^<>=!,*\[\]-]{0,199}`

// All lists the languages.
func All() []Language {
	return []Language{
		{
			Name: "python", Aliases: []string{"py", "python3"}, Suffix: ".py", Tools: []string{"python3"}, Image: "python:3.13-slim", Client: "pip",
			Packages: "pandas or pandas==2.3.1", recipe: "python.sh", packages: whole(packageName),
			plots: "paddock_plots.py", env: map[string]string{"MPLBACKEND": "module://paddock_plots"},
		},
		{
			Name: "javascript", Aliases: []string{"js", "node"}, Suffix: ".js", Tools: []string{"node"}, Image: "node:22-slim", Client: "npm",
			Packages: "lodash or lodash@4.17.21", recipe: "javascript.sh", packages: whole(packageName),
		},
		{
			Name: "go", Aliases: []string{"golang"}, Suffix: ".go", Tools: []string{"go"}, Image: "golang:1.25", Client: "go",
			Packages: "MODULE@VERSION", recipe: "go.sh", packages: whole(packageName),
		},
		{
			Name: "java", Suffix: ".java", Tools: []string{"java"}, Image: "eclipse-temurin:21-jdk",
			Packages: "GROUP:ARTIFACT:VERSION", recipe: "java.sh", packages: whole(`[A-Za-z0-9_][A-Za-z0-9_.-]*:[A-Za-z0-9_.-]+:[A-Za-z0-9_.-]+`),
		},
		{
			Name: "rust", Aliases: []string{"rs"}, Suffix: ".rs", Tools: []string{"rustc", "cc"}, Image: "rust:1-slim", Client: "cargo",
			Packages: "serde or serde@1.0.219", recipe: "rust.sh", packages: whole(packageName),
		},
		{Name: "cpp", Aliases: []string{"c++", "cc", "c"}, Suffix: ".cpp", Tools: []string{"g++"}, Image: "gcc:15", recipe: "cpp.sh"},
		{
			Name: "ruby", Aliases: []string{"rb"}, Suffix: ".rb", Tools: []string{"ruby"}, Image: "ruby:3.4-slim",
			Packages: "rake or rake:13.2.1", recipe: "ruby.sh", packages: whole(`[A-Za-z0-9][A-Za-z0-9._:-]{0,199}`),
		},
		{
			Name: "r", Suffix: ".R", Tools: []string{"Rscript"}, Image: "r-base:4.5.1",
			Packages: "jsonlite", recipe: "r.sh", packages: whole(`[A-Za-z][A-Za-z0-9.]{0,199}`), plots: "plots.R",
		},
	}
}

func whole(pattern string) *regexp.Regexp { return regexp.MustCompile(`^(?:` + pattern + `)$`) }

// Names lists the languages by name.
func Names() []string {
	var list []string
	for _, l := range All() {
		list = append(list, l.Name)
	}
	return list
}

// Parse finds a language by its name or an alias.
func Parse(text string) (*Language, error) {
	var known []string
	for _, l := range All() {
		if strings.EqualFold(text, l.Name) || slices.Contains(l.Aliases, strings.ToLower(text)) {
			return &l, nil
		}
		known = append(append(known, l.Name), l.Aliases...)
	}
	return nil, fmt.Errorf("%q is no language that Paddock runs (%s)%s: %w", text, strings.Join(Names(), ", "), nearest(text, known), paddock.Invalid)
}

func nearest(text string, known []string) string {
	if near := policy.Nearest(strings.ToLower(text), known); near != "" {
		return "; " + near + " is one"
	}
	return ""
}

// CheckPackages returns an error unless the package client of the language takes each of them for a package.
func (l *Language) CheckPackages(list []string) error {
	if len(list) > 0 && l.packages == nil {
		return fmt.Errorf("%s has no package client: an image that has the libraries is one way: %w", l.Name, paddock.Unsupported)
	}
	for _, one := range list {
		if !l.packages.MatchString(one) {
			return fmt.Errorf("%q is no package as %s has them, such as %s: %w", one, l.Name, l.Packages, paddock.Invalid)
		}
	}
	return nil
}

// Source returns where the source of a program lies inside. name is that of the file on the host; empty is none.
func (l *Language) Source(name string) string {
	base := path.Base(strings.ReplaceAll(name, `\`, "/"))
	if name == "" || base == "/" || base == "." || base == ".." {
		base = "main" + l.Suffix
		if l.Name == "java" {
			base = "Main" + l.Suffix
		}
	}
	return Top + "/src/" + base
}

// A File is what has to lie inside.
type File struct{ Path, Text string }

// Files returns what a recipe needs beside the source. artifacts says that such are taken.
func (l *Language) Files(artifacts bool) ([]File, error) {
	if !artifacts || l.plots == "" {
		return nil, nil
	}
	text, err := recipes.ReadFile("recipe/" + l.plots)
	if err != nil {
		return nil, fmt.Errorf("language %s: %w: %w", l.Name, err, paddock.Internal)
	}
	dir := Top
	if l.Name == "python" {
		dir += "/libs"
	}
	return []File{{dir + "/" + l.plots, string(text)}}, nil
}

// Env returns what is set for a program whose artifacts are taken.
func (l *Language) Env() map[string]string { return l.env }

// Install returns the command that installs packages.
func (l *Language) Install(packages []string) ([]string, error) {
	return l.command("install", packages)
}

// Run returns the command that runs the program at source with its arguments.
func (l *Language) Run(source string, args []string) ([]string, error) {
	return l.command("run", append([]string{source}, args...))
}

func (l *Language) command(action string, args []string) ([]string, error) {
	var text strings.Builder
	for _, name := range []string{"begin.sh", l.recipe} {
		part, err := recipes.ReadFile("recipe/" + name)
		if err != nil {
			return nil, fmt.Errorf("language %s: %w: %w", l.Name, err, paddock.Internal)
		}
		text.Write(part)
	}
	text.WriteString(`"$action" "$@"` + "\n")
	return append([]string{"sh", "-c", text.String(), "paddock-language", Top, action}, args...), nil
}
