package bootfiles

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paddock-sandbox/paddock"
)

// entries lists a directory.
func entries(t *testing.T, dir string) []string {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}

// unsupportedHere skips a test on a host without machines.
func unsupportedHere(t *testing.T) {
	t.Helper()
	if err := supported(); err != nil {
		t.Skip(err)
	}
}

func TestAPackageBecomesAKernelForMachines(t *testing.T) {
	unsupportedHere(t)
	for _, kind := range []string{"", ".gz", ".xz", ".zst"} {
		dir := t.TempDir()
		deb := testPackage(t, kind, packageFiles(testRelease))
		path := filepath.Join(dir, "kernel.deb")
		if err := os.WriteFile(path, deb, 0o644); err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(deb)
		o := Options{Data: filepath.Join(dir, "data", "vm"), Package: path, Sum: fmt.Sprintf("%X", sum)}
		k, err := Setup(t.Context(), o)
		if err != nil {
			t.Fatalf("%q: %v", kind, err)
		}
		list, err := k.Modules()
		if err != nil || !slices.Equal(names(list), inOrder()) {
			t.Errorf("%q: %v, %v", kind, names(list), err)
		}
		if got, err := os.ReadFile(k.Path); err != nil || !bytes.Equal(got, testKernel(pvhEntry, "")) {
			t.Errorf("%q: the kernel is another one: %v", kind, err)
		}
		name := nameOf(testRelease, made(sum))
		want := []string{"config", "failover.ko", "modules.builtin", "net_failover.ko", "overlay.ko", "virtio-rng.ko", "virtio.ko", "virtio_balloon.ko", "virtio_console.ko", "virtio_mmio.ko", "virtio_net.ko", "virtio_ring.ko"}
		if got := entries(t, k.Directory); !slices.Equal(got, want) {
			t.Errorf("%q: modules are %v, want %v", kind, got, want)
		}
		if got := entries(t, o.Data); !slices.Equal(got, []string{name, current}) {
			t.Errorf("%q: there is %v", kind, got)
		}
		again, err := Setup(t.Context(), o)
		if err != nil || again != k {
			t.Errorf("%q: the second time %+v, %v", kind, again, err)
		}
		if found, err := Find(Options{Data: o.Data}); err != nil || found != k {
			t.Errorf("%q: found %+v, %v", kind, found, err)
		}
	}
}

func TestAPackageThatIsNoKernelLeavesNothing(t *testing.T) {
	unsupportedHere(t)
	deb := func(change func(files []file) []file) []byte {
		return testPackage(t, ".gz", change(packageFiles(testRelease)))
	}
	without := func(part string) func([]file) []file {
		return func(files []file) []file {
			return slices.DeleteFunc(files, func(f file) bool { return strings.Contains(f.name, part) })
		}
	}
	whole := deb(func(f []file) []file { return f })
	for _, tt := range []struct {
		name string
		data []byte
		sum  string
		want string
		kind paddock.Kind
	}{
		{"text", []byte("hello, this is not a package"), "", "not a package of Debian's", paddock.Invalid},
		{"cut", whole[:len(whole)-900], "", "unexpected EOF", 0},
		{"cut in its head", whole[:30], "", "not a package", paddock.Invalid},
		{"another sum", whole, strings.Repeat("0", 64), "not the required one", paddock.Denied},
		{"no sum", whole, "abc", "64 hexadecimal digits", paddock.Invalid},
		{"without a kernel", deb(without("vmlinuz")), "", "there is no kernel in it", paddock.Invalid},
		{"without virtio", deb(without("virtio_mmio")), "", "virtio_mmio is neither", paddock.Unsupported},
		{"with modules of another", deb(func(f []file) []file {
			f[0] = file{"/boot/vmlinuz-9.9", testImage("9.9", append(packedLZ4(testKernel(pvhEntry, "")), 0, 0, 0, 0))}
			return f
		}), "", "modules are of another kernel", paddock.Invalid},
		{"two kernels", deb(func(f []file) []file { return append(f, f[0]) }), "", "a second kernel", paddock.Invalid},
		{"another kernel than it says", deb(func(f []file) []file { f[0].name = "/boot/vmlinuz-7"; return f }), "", `says that it is "6.1.0-9-test"`, paddock.Invalid},
		{"a place outside", deb(func(f []file) []file { f[0].name = "/boot/vmlinuz-../../x"; return f }), "", "there is no kernel in it", paddock.Invalid},
		{"packed in an odd way", bytes.Replace(whole, []byte("data.tar.gz "), []byte("data.tar.br "), 1), "", "unknown compression", paddock.Unsupported},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "kernel.deb")
			if err := os.WriteFile(path, tt.data, 0o644); err != nil {
				t.Fatal(err)
			}
			o := Options{Data: filepath.Join(dir, "data"), Package: path, Sum: tt.sum}
			_, err := Setup(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), tt.want) || tt.kind != 0 && !errors.Is(err, tt.kind) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if list, err := os.ReadDir(o.Data); err == nil && len(list) > 0 {
				t.Errorf("left over: %v", list)
			}
		})
	}
}

func TestAKernelThatIsNamedIsCopiedWithItsModules(t *testing.T) {
	unsupportedHere(t)
	dir := t.TempDir()
	writeFiles(t, filepath.Join(dir, "lib", "modules", testRelease), modulesOf(testRelease))
	kernel := testKernel(pvhEntry, "")
	for name, data := range map[string][]byte{"vmlinuz": testImage(testRelease, packed(t, ".gz", kernel)), "vmlinux": kernel} {
		writeFiles(t, dir, map[string][]byte{"boot/" + name: data})
		o := Options{Data: filepath.Join(dir, "data"), Path: filepath.Join(dir, "boot", name)}
		k, err := Setup(t.Context(), o)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		list, err := k.Modules()
		if err != nil || !slices.Equal(names(list), inOrder()) || !strings.HasPrefix(k.Directory, o.Data) {
			t.Errorf("%s: %v in %s: %v", name, names(list), k.Directory, err)
		}
		if got, err := os.ReadFile(k.Path); err != nil || !bytes.Equal(got, kernel) || !strings.HasPrefix(k.Path, o.Data) {
			t.Errorf("%s: %s: %v", name, k.Path, err)
		}
		if again, err := Setup(t.Context(), o); err != nil || again != k {
			t.Errorf("%s: the second time %+v, %v", name, again, err)
		}
		if got := len(entries(t, filepath.Dir(k.Path))); got != 2 {
			t.Errorf("%s: there are %d files", name, got)
		}
	}
	// The link, this kernel, and the previous one.
	if got := entries(t, filepath.Join(dir, "data")); len(got) != 3 {
		t.Errorf("there is %v", got)
	}
	if _, err := Setup(t.Context(), Options{Data: dir, Path: "a", Package: "b"}); !errors.Is(err, paddock.Invalid) {
		t.Errorf("both: %v", err)
	}
	if _, err := Setup(t.Context(), Options{}); !errors.Is(err, paddock.Invalid) {
		t.Errorf("nowhere: %v", err)
	}
	if _, err := Setup(t.Context(), Options{Data: dir, Path: filepath.Join(dir, "nothing")}); !errors.Is(err, paddock.NotFound) {
		t.Errorf("nothing: %v", err)
	}
}

func TestWhatWasSetUpLongAgoIsRemoved(t *testing.T) {
	dir := t.TempDir()
	old := time.Now().Add(-48 * time.Hour)
	for _, name := range []string{"6.1-00000001", "6.1-00000002", "6.1-00000003", "initrd", "6.1-mine", ".new-123"} {
		if err := os.Mkdir(filepath.Join(dir, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "6.1-00000004"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("6.1-00000002", filepath.Join(dir, current)); err != nil {
		t.Fatal(err)
	}
	if err := choose(dir, "6.1-00000003"); err != nil {
		t.Fatal(err)
	}
	want := []string{"6.1-00000002", "6.1-00000003", "6.1-00000004", "6.1-mine", current, "initrd"}
	if got := entries(t, dir); !slices.Equal(got, want) {
		t.Errorf("left is %v, want %v", got, want)
	}
}

// fakeClient puts programs into PATH in place of the package client.
func fakeClient(t *testing.T, programs map[string]string) {
	t.Helper()
	dir := t.TempDir()
	for name, script := range programs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+script+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir+":/usr/bin:/bin")
	if len(programs) == 0 {
		t.Setenv("PATH", dir)
	}
}

func TestThePackageClientFetchesTheKernel(t *testing.T) {
	unsupportedHere(t)
	deb := testPackage(t, ".gz", packageFiles(testRelease))
	source := filepath.Join(t.TempDir(), "source")
	if err := os.WriteFile(source, deb, 0o644); err != nil {
		t.Fatal(err)
	}
	cache := func(sum string) string {
		return `case "$1 $2 $3 $4" in
"depends --no-recommends --no-suggests linux-image-cloud-amd64") printf '%s\n' linux-image-cloud-amd64 '  Depends: linux-image-6.1.0-9-test';;
"show --no-all-versions linux-image-6.1.0-9-test ") printf '%s\n' 'Package: linux-image-6.1.0-9-test' 'Version: 6.1.4-1' 'SHA256: ` + sum + `';;
*) echo "E: $*" >&2; exit 100;;
esac`
	}
	get := `[ "$*" = "--quiet download linux-image-6.1.0-9-test=6.1.4-1" ] || exit 100
cp ` + source + ` linux-image-6.1.0-9-test_6.1.4-1_amd64.deb`
	right := fmt.Sprintf("%x", sha256.Sum256(deb))
	for _, tt := range []struct {
		name     string
		programs map[string]string
		want     string // empty expects a kernel
		kind     paddock.Kind
	}{
		{"as it should be", map[string]string{"apt-cache": cache(right), "apt-get": get}, "", 0},
		{"another package than is vouched for", map[string]string{"apt-cache": cache(strings.Repeat("1", 64)), "apt-get": get}, "not the required one", paddock.Denied},
		{"without a sum", map[string]string{"apt-cache": cache(""), "apt-get": get}, "tells no SHA-256", paddock.Unsupported},
		{"without a network", map[string]string{"apt-cache": cache(right), "apt-get": "echo 'E: Could not resolve' >&2; exit 100"}, "cannot fetch linux-image-6.1.0-9-test: E: Could not resolve (exit status 100)", paddock.Unavailable},
		{"without a package of that name", map[string]string{"apt-cache": "echo 'E: No packages found' >&2; exit 100", "apt-get": get}, "remedy: sudo apt-get update", paddock.Unsupported},
		{"with something odd for an answer", map[string]string{"apt-cache": "echo '  Depends: linux-image-1; rm -rf /'", "apt-get": get}, "does not tell which kernel", paddock.Unsupported},
		{"nothing fetched", map[string]string{"apt-cache": cache(right), "apt-get": "true"}, "downloaded 0 packages", 0},
		{"without a client", nil, "there is no apt-cache here, by which Debian's kernel is fetched; remedy: download Debian's kernel package", paddock.Unsupported},
	} {
		t.Run(tt.name, func(t *testing.T) {
			fakeClient(t, tt.programs)
			data := t.TempDir()
			k, err := Setup(t.Context(), Options{Data: data})
			if tt.want == "" {
				if err != nil || k.Release != testRelease {
					t.Errorf("got %+v, %v", k, err)
				}
				// An existing kernel is not downloaded again.
				fakeClient(t, map[string]string{"apt-cache": cache(right), "apt-get": "exit 1"})
				if again, err := Setup(t.Context(), Options{Data: data}); err != nil || again != k {
					t.Errorf("the second time %+v, %v", again, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || tt.kind != 0 && !errors.Is(err, tt.kind) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
			if list := entries(t, data); len(list) > 0 {
				t.Errorf("left over: %v", list)
			}
		})
	}
}

// Debian's own package, if this host's package client has it.
func TestDebiansKernelIsOneForMachines(t *testing.T) {
	unsupportedHere(t)
	if testing.Short() {
		t.Skip("fetches a package")
	}
	if _, ok := os.LookupEnv("PADDOCK_TEST_KERNEL"); !ok {
		t.Skip("PADDOCK_TEST_KERNEL names no directory: without a kernel nothing of machines is tried here")
	}
	if _, err := exec.LookPath("apt-cache"); err != nil {
		t.Skip("no apt-cache")
	}
	data := t.TempDir()
	k, err := Setup(t.Context(), Options{Data: data})
	if errors.Is(err, paddock.Unavailable) || errors.Is(err, paddock.Unsupported) && strings.Contains(err.Error(), "the package client does not") {
		t.Skip("it cannot be fetched: ", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	list, err := k.Modules()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"virtio_mmio", "virtio_console", "fuse", "overlay", "virtio_net"} {
		if !slices.Contains(names(list), name) {
			t.Errorf("%s is not among %v", name, names(list))
		}
	}
	if st, err := os.Stat(k.Path); err != nil || st.Size() < 10<<20 {
		t.Errorf("%s: %v, %v", k.Path, st, err)
	}
	var b bytes.Buffer
	if err := Initrd(&b, []byte("init"), list); err != nil || b.Len() < 500_000 {
		t.Errorf("an initrd of %d bytes: %v", b.Len(), err)
	}
}
