// Package build makes an image by a Dockerfile. Package dockerfile says what is to be done, a driver of sandboxes runs
// commands, and a store of images keeps layers and what comes of them.
//
// A Dockerfile, the files beside it and the images that it begins with are strangers'. No command runs outside of a
// sandbox, which has the network that the caller allows, or none. Files are copied without following a link out of the
// context or the image. What a sandbox says that it changed is bytes of the sandbox: it is read with bounds, and becomes
// a layer whose names are inside of the image. Secrets are shown to the step that asks for them, and are part of no
// layer.
package build
