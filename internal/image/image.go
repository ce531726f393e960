// Package image is what tiers and the store of images have in common: the form in which a tier needs an image's
// files, and what it is told about the image.
package image

import (
	"context"
	"os"
)

// A Form is how the files of an image are kept for a tier.
type Form string

const (
	// FormDir is a directory with the file tree. All files belong to one user, unless its owner is root.
	FormDir Form = "dir"
	// FormEROFS is a file with a file system: EROFS, not compressed, without inline data. Owners, devices, set-id
	// bits and extended attributes are those of the image.
	FormEROFS Form = "erofs"
)

// A Config is what an image says about the commands that run in it.
type Config struct {
	Env        []string          `json:"env,omitempty"` // NAME=value
	Dir        string            `json:"dir,omitempty"` // the working directory
	User       string            `json:"user,omitempty"`
	Entrypoint []string          `json:"entrypoint,omitempty"`
	Command    []string          `json:"command,omitempty"`
	Shell      []string          `json:"shell,omitempty"`
	Labels     map[string]string `json:"labels,omitempty"`
	Ports      []string          `json:"ports,omitempty"` // "5432/tcp"
	Volumes    []string          `json:"volumes,omitempty"`
}

// A Tree is an image's files in one form. Nobody writes it.
type Tree struct {
	Digest string `json:"digest"` // of its manifest: "sha256:…"
	Form   Form   `json:"form"`
	Path   string `json:"path"` // real path of the directory or file
	Size   int64  `json:"size"` // bytes that it takes
	Config Config `json:"config,omitzero"`
}

// A Source has images.
type Source interface {
	// Tree returns an image that the source holds, in a form, which it makes if it has not been made yet. It never
	// pulls. While any process has hold open, nobody removes the tree: hold has a shared lock of flock(2), which a
	// child that inherits it keeps. An image that is not there is [paddock.NotFound].
	Tree(ctx context.Context, digest string, form Form) (tree Tree, hold *os.File, err error)
}
