// Package buildcache keeps the caches of build tools between the sandboxes of one workspace, in directories of the
// caller that no program of the host uses. Sandboxes write to them, so everything in them is hostile: it is measured and
// removed without following a link, and never shown to a sandbox of another workspace.
package buildcache
