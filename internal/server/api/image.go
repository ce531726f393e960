package api

import "time"

// An Image is an image that the caller's sandboxes may begin with.
type Image struct {
	Digest     string    `json:"digest"`     // of its manifest: "sha256:…"
	References []string  `json:"references"` // that lead to it
	Size       int64     `json:"size"`       // of its layers, as they were sent
	Pulled     time.Time `json:"pulled,omitzero"`
	Used       time.Time `json:"used,omitzero"`    // last
	Shared     bool      `json:"shared,omitempty"` // the operator's, for all tenants
}

// Images lists images.
type Images struct {
	Images []Image `json:"images"`
}

// When a registry is asked for an image.
const (
	PullMissing = "missing" // if the image is not here; also if empty
	PullAlways  = "always"
	PullNever   = "never"
)

// An ImagePull asks for the image that a reference leads to.
type ImagePull struct {
	Reference string `json:"reference"`
	Pull      string `json:"pull,omitempty"`

	// For the registry. The server keeps them while it pulls. Empty is anonymous access.
	Username string `json:"username,omitempty"`
	Password string `json:"password,omitempty"`
}
