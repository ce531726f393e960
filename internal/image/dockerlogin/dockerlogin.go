// Package dockerlogin reads the registry credentials of the caller: the configuration of Docker or Podman, and the
// credential helpers that it names, which are programs. It is for the command line alone, where the caller and the owner
// of the credentials are one.
package dockerlogin

import (
	"context"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/internal/image/registry"
)

// dockerHub is the host of references without one, which configurations know by another name.
const dockerHub = "docker.io"

// Credentials returns the caller's credentials for a registry. A caller without any has the zero value.
func Credentials(ctx context.Context, host string) (registry.Credentials, error) {
	if host == dockerHub {
		host = name.DefaultRegistry
	}
	reg, err := name.NewRegistry(host)
	if err != nil {
		return registry.Credentials{}, fmt.Errorf("%q is no host: %w", host, paddock.Invalid)
	}
	who, err := authn.Resolve(ctx, authn.DefaultKeychain, reg)
	if err != nil {
		return registry.Credentials{}, fmt.Errorf("the configuration of Docker: %w: %w", err, paddock.Invalid)
	}
	c, err := authn.Authorization(ctx, who)
	if err != nil {
		return registry.Credentials{}, fmt.Errorf("the configuration of Docker: %w: %w", err, paddock.Invalid)
	}
	return registry.Credentials{Username: c.Username, Password: c.Password, Token: c.IdentityToken}, nil
}
