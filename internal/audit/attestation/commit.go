package attestation

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"github.com/paddock-sandbox/paddock"
)

// Bounds of files of a repository, which a hostile program may have written.
const (
	maxRef    = 4096
	maxPacked = 256 << 20
	maxTag    = 1 << 20
	maxHops   = 5 // symbolic references, or tags of tags
)

// IsCommit reports whether text is a commit's digest: 40 or 64 hexadecimal digits, in lower case.
func IsCommit(text string) bool {
	return (len(text) == 40 || len(text) == 64) && strings.Trim(text, "0123456789abcdef") == ""
}

// Resolve returns the digest of the commit that a revision names in the repository of a directory: HEAD, a branch, a tag
// or the whole name of a reference. It reads files of the repository, and starts no program.
func Resolve(dir *os.Root, revision string) (string, error) {
	if IsCommit(revision) {
		return revision, nil
	}
	git, err := openRepository(dir)
	if err != nil {
		return "", err
	}
	defer git.close()
	if !fs.ValidPath(revision) || strings.ContainsFunc(revision, func(r rune) bool { return r <= ' ' || strings.ContainsRune("~^:?*[\\\x7f@", r) }) {
		return "", fmt.Errorf("%q is neither HEAD nor the name of a branch or tag, nor a commit's whole digest: %w", revision, paddock.Invalid)
	}
	names := []string{"refs/heads/" + revision, "refs/tags/" + revision}
	if revision == "HEAD" || strings.HasPrefix(revision, "refs/") {
		names = []string{revision}
	}
	var found []string
	for _, name := range names {
		digest, err := git.follow(name)
		if errors.Is(err, paddock.NotFound) {
			continue
		}
		if err != nil {
			return "", err
		}
		found = append(found, digest)
	}
	switch {
	case len(found) == 0:
		return "", fmt.Errorf("the repository has no reference %s: %w", revision, paddock.NotFound)
	case len(found) > 1 && found[0] != found[1]:
		return "", fmt.Errorf("%s is a branch and a tag: %w", revision, paddock.Invalid)
	}
	return found[0], nil
}

// follow returns the commit of a reference.
func (r *repository) follow(name string) (string, error) {
	for range maxHops {
		data, err := readFile(r.place(name), name, maxRef)
		if errors.Is(err, paddock.NotFound) {
			return packed(r.common, name)
		}
		if err != nil {
			return "", err
		}
		text := strings.TrimRight(string(data), " \n")
		if target, ok := strings.CutPrefix(text, "ref: "); ok {
			if name = strings.TrimSpace(target); !fs.ValidPath(name) || !strings.HasPrefix(name, "refs/") {
				return "", fmt.Errorf("a reference leads to %q: %w", name, paddock.Invalid)
			}
			continue
		}
		if !IsCommit(text) {
			return "", fmt.Errorf("the file of the reference %s has no digest: %w", name, paddock.Invalid)
		}
		return peel(r.common, name, text)
	}
	return "", fmt.Errorf("references lead to each other: %w", paddock.Invalid)
}

// peel follows a tag that is an object of its own to its commit.
func peel(git *os.Root, name, digest string) (string, error) {
	if !strings.HasPrefix(name, "refs/tags/") {
		return digest, nil
	}
	for range maxHops {
		kind, text, err := object(git, digest)
		switch {
		case errors.Is(err, paddock.NotFound):
			return "", fmt.Errorf("the tag %s: %w", strings.TrimPrefix(name, "refs/tags/"), err)
		case err != nil:
			return "", err
		case kind == "commit":
			return digest, nil
		case kind != "tag":
			return "", fmt.Errorf("the tag %s names no commit: %w", name, paddock.Invalid)
		}
		line, rest, _ := strings.Cut(string(text), "\n")
		digest = strings.TrimPrefix(line, "object ")
		if !IsCommit(digest) {
			return "", fmt.Errorf("the tag %s names no object: %w", name, paddock.Invalid)
		}
		if strings.HasPrefix(rest, "type commit\n") {
			return digest, nil
		}
	}
	return "", fmt.Errorf("a tag leads to more than %d others: %w", maxHops, paddock.Invalid)
}

// packed looks a reference up in the file of packed references. git writes the commit of a tag behind it.
func packed(git *os.Root, name string) (string, error) {
	data, err := readFile(git, "packed-refs", maxPacked)
	if err != nil {
		return "", err
	}
	peeled, found := false, ""
	for line := range bytes.Lines(data) {
		text := strings.TrimRight(string(line), "\n")
		switch {
		case strings.HasPrefix(text, "#"):
			peeled = strings.Contains(text+" ", " peeled ") || strings.Contains(text+" ", " fully-peeled ")
		case found != "" && strings.HasPrefix(text, "^"):
			if !IsCommit(text[1:]) {
				return "", fmt.Errorf("packed-refs has no digest for %s: %w", name, paddock.Invalid)
			}
			return text[1:], nil
		case found != "":
			return whole(git, name, found, peeled)
		default:
			if digest, ref, ok := strings.Cut(text, " "); ok && ref == name && IsCommit(digest) {
				found = digest
			}
		}
	}
	if found != "" {
		return whole(git, name, found, peeled)
	}
	return "", fmt.Errorf("there is no reference %s: %w", name, paddock.NotFound)
}

// whole is the digest of a packed reference without a commit behind it.
func whole(git *os.Root, name, digest string, peeled bool) (string, error) {
	if peeled {
		return digest, nil
	}
	return peel(git, name, digest)
}

// readFile reads a plain file of a repository. A link leads nowhere outside of it.
func readFile(git *os.Root, name string, most int64) ([]byte, error) {
	f, size, err := openPlain(git, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > most {
		return nil, fmt.Errorf("%s of the repository is no plain file of at most %d bytes: %w", name, most, paddock.Invalid)
	}
	data, err := io.ReadAll(bufio.NewReader(io.LimitReader(f, most)))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w: %w", name, err, paddock.Denied)
	}
	return data, nil
}

// openPlain opens a plain file of a repository, and returns its size.
func openPlain(git *os.Root, name string) (_ *os.File, size int64, err error) {
	f, err := git.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return nil, 0, fmt.Errorf("there is no file %s: %w", name, paddock.NotFound)
	case err != nil:
		return nil, 0, fmt.Errorf("%w: %w", err, paddock.Denied)
	}
	defer func() {
		if err != nil {
			f.Close()
		}
	}()
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, 0, fmt.Errorf("%w: %w", err, paddock.Denied)
	case st.IsDir():
		return nil, 0, fmt.Errorf("%s is a directory: %w", name, paddock.NotFound)
	case !st.Mode().IsRegular():
		return nil, 0, fmt.Errorf("%s of the repository is no plain file: %w", name, paddock.Invalid)
	}
	return f, st.Size(), nil
}

// Commit returns the subject of a commit.
func Commit(digest string) Subject {
	return Subject{Name: "commit:" + digest, Digest: Digest{GitCommit: digest}}
}

// Image returns the subject of an image, by the hexadecimal digits of its SHA-256.
func Image(digest string) Subject {
	return Subject{Name: "image:" + digest, Digest: Digest{SHA256: digest}}
}

// WorkspaceName is the name of the subject that is a workspace.
const WorkspaceName = "workspace"

// Workspace returns the subject of a workspace, whose digest is that of [DigestWorkspace].
func Workspace(digest string) Subject {
	return Subject{Name: WorkspaceName, Digest: Digest{SHA256: digest}}
}
