package gvisor_test

import (
	"bytes"
	"os"
	"testing"

	"github.com/paddock-sandbox/paddock"
	"github.com/paddock-sandbox/paddock/drivertest"
	"github.com/paddock-sandbox/paddock/internal/driver/gvisor"
	"github.com/paddock-sandbox/paddock/internal/image"
	"github.com/paddock-sandbox/paddock/internal/image/imagetest"
)

func TestTrial(t *testing.T) {
	images := imagetest.New(t)
	digest := images.Add(t, "/tmp/gvt/deb", image.Config{})
	d, err := gvisor.New(gvisor.Options{State: t.TempDir(), Data: data, Environ: os.Environ(), Hosts: drivertest.Hosts(), Images: images})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	sb, err := d.Create(t.Context(), paddock.Spec{Root: paddock.Root{Kind: paddock.RootImage, Image: digest}, User: os.Getenv("TRIAL_USER"), Ephemeral: true, AllowMissing: drivertest.Weak(t, open)})
	if err != nil {
		t.Fatal(err)
	}
	defer sb.Remove(t.Context())
	var out bytes.Buffer
	p, err := sb.Start(t.Context(), paddock.Cmd{Args: []string{"/bin/sh", "-c", os.Getenv("TRIAL")}, Output: paddock.Output{Stdout: &out, Stderr: &out}})
	if err != nil {
		t.Fatal(err)
	}
	exit, err := p.Wait(t.Context())
	t.Logf("%s\n%+v %v", out.String(), exit, err)
}
