package bootfiles

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

func names(list []Module) []string {
	var out []string
	for _, m := range list {
		out = append(out, m.Name)
	}
	return out
}

func TestModulesComeAfterWhatTheyDependOn(t *testing.T) {
	for kind := range packers() {
		dir := t.TempDir()
		files := map[string][]byte{}
		for name, data := range modulesOf(testRelease) {
			if strings.HasSuffix(name, ".ko") && !strings.Contains(name, "virtio.ko") {
				name, data = name+kind, packed(t, kind, data)
			}
			files[name] = data
		}
		writeFiles(t, dir, files)
		list, err := Kernel{Release: testRelease, Directory: dir}.Modules()
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if !slices.Equal(names(list), inOrder()) {
			t.Errorf("%s: %v, want %v", kind, names(list), inOrder())
		}
		for _, m := range list {
			if bytes.Contains(m.Data, []byte(signatureEnd)) || !bytes.HasPrefix(m.Data, []byte("\x7fELF")) {
				t.Errorf("%s: %s is not what is loaded", kind, m.Name)
			}
		}
	}
}

func TestAKernelWithoutWhatMachinesNeedIsRefused(t *testing.T) {
	tests := []struct {
		name   string
		change func(map[string][]byte)
		want   string
		kind   paddock.Kind
	}{
		{"a module is not there", func(f map[string][]byte) { delete(f, "kernel/drivers/virtio/virtio_mmio.ko") },
			"how the machine finds its devices: the module virtio_mmio is neither built in nor in ", paddock.Unsupported},
		{"what it depends on is not there", func(f map[string][]byte) { delete(f, "kernel/net/core/failover.ko") },
			"the network: the module failover is neither", paddock.Unsupported},
		{"of another kernel", func(f map[string][]byte) { f["kernel/fs/overlayfs/overlay.ko"] = testModule("5.0", "") },
			`is of the kernel "5.0", not "6.1.0-9-test"`, paddock.Invalid},
		{"a circle", func(f map[string][]byte) {
			f["kernel/drivers/virtio/virtio_ring.ko"] = testModule(testRelease, "virtio-mmio")
			f["kernel/drivers/virtio/virtio_mmio.ko"] = testModule(testRelease, "virtio_ring")
		}, "in a circle: virtio_ring, virtio_mmio, virtio_ring", paddock.Invalid},
		{"no module at all", func(f map[string][]byte) { f["kernel/fs/overlayfs/overlay.ko"] = []byte("text") }, "module overlay: not an ELF file", paddock.Invalid},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			files := modulesOf(testRelease)
			tt.change(files)
			writeFiles(t, dir, files)
			_, err := Kernel{Release: testRelease, Directory: dir}.Modules()
			if err == nil || !strings.Contains(err.Error(), tt.want) || !errors.Is(err, tt.kind) {
				t.Errorf("got %v, want %q (%v)", err, tt.want, tt.kind)
			}
		})
	}
}

// A kernel that an earlier version set up lacks the module.
func TestAMachineDoesWithoutTheModuleThatGivesBack(t *testing.T) {
	for _, there := range []bool{true, false} {
		dir := t.TempDir()
		files := modulesOf(testRelease)
		if !there {
			delete(files, "kernel/drivers/virtio/virtio_balloon.ko")
		}
		writeFiles(t, dir, files)
		k := Kernel{Release: testRelease, Directory: dir}
		list, err := k.Modules()
		if err != nil || slices.Contains(names(list), balloon) != there {
			t.Errorf("with it %v: %v, %v", there, names(list), err)
		}
		if gives, err := k.GivesBack(); err != nil || gives != there {
			t.Errorf("with it %v: gives back %v, %v", there, gives, err)
		}
	}
}

func TestAKernelWithoutModulesHasAllBuiltIn(t *testing.T) {
	dir := t.TempDir()
	all := ""
	for _, n := range needs() {
		all += n.says + "\x00"
	}
	writeFiles(t, dir, map[string][]byte{"whole": testKernel(pvhEntry, all), "bare": testKernel(pvhEntry, "virtio-mmio\x00fuse\x00")})
	if list, err := (Kernel{Path: filepath.Join(dir, "whole")}).Modules(); err != nil || len(list) != 0 {
		t.Errorf("got %v, %v", list, err)
	}
	_, err := Kernel{Path: filepath.Join(dir, "bare")}.Modules()
	if err == nil || !strings.Contains(err.Error(), "(virtio, virtio_console, overlay, virtio_net, virtio_rng)") || !errors.Is(err, paddock.Unsupported) {
		t.Errorf("got %v", err)
	}
}

func TestSignaturesAreCutOffWhereNobodyInsists(t *testing.T) {
	module := testModule(testRelease, "")
	for _, tt := range []struct {
		name       string
		data, want []byte
	}{
		{"one", signed(module), module},
		{"none", module, module},
		{"only its end", []byte(signatureEnd), []byte(signatureEnd)},
		{"longer than all", append(append(make([]byte, 8), 0, 1, 0, 0), signatureEnd...), append(append(make([]byte, 8), 0, 1, 0, 0), signatureEnd...)},
	} {
		if got := withoutSignature(tt.data); !bytes.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	dir := t.TempDir()
	files := modulesOf(testRelease)
	files["config"] = []byte("CONFIG_A=y\nCONFIG_MODULE_SIG_FORCE=y\n")
	writeFiles(t, dir, files)
	list, err := Kernel{Release: testRelease, Directory: dir}.Modules()
	if err != nil || !bytes.HasSuffix(list[0].Data, []byte(signatureEnd)) {
		t.Errorf("a signature was cut off that the kernel asks for: %v", err)
	}
}
