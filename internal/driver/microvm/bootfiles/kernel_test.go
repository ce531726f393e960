package bootfiles

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paddock-sandbox/paddock"
)

// testHost returns a system without kernels.
func testHost(t *testing.T) host {
	t.Helper()
	dir := t.TempDir()
	return host{shared: filepath.Join(dir, "shared"), boot: filepath.Join(dir, "boot"), modules: filepath.Join(dir, "lib", "modules")}
}

func TestAKernelIsFoundInAnOrder(t *testing.T) {
	h := testHost(t)
	data := t.TempDir()
	_, err := h.find(Options{Data: data})
	if !errors.Is(err, paddock.Unsupported) || !strings.Contains(err.Error(), "no kernel for machines was found; remedy: run `paddock vm setup`") {
		t.Errorf("nothing there: %v", err)
	}

	// The system's kernels: the newest for virtual machines, or else the newest.
	image := func(release string) []byte {
		return testImage(release, packed(t, ".gz", testKernel(pvhEntry, "")))
	}
	system := func(release string) {
		writeFiles(t, h.boot, map[string][]byte{"vmlinuz-" + release: image(release)})
		writeFiles(t, filepath.Join(h.modules, release), modulesOf(release))
	}
	check := func(release, dir string) {
		t.Helper()
		k, err := h.find(Options{Data: data})
		if err != nil || k.Release != release || k.Directory != dir || k.ID == "" {
			t.Errorf("got %+v, %v; want %s with %s", k, err, release, dir)
			return
		}
		if got, err := os.ReadFile(k.Path); err != nil || !bytes.Equal(got, testKernel(pvhEntry, "")) {
			t.Errorf("%s is not what was packed: %v", k.Path, err)
		}
	}
	for _, release := range []string{"6.1.0-9", "6.1.0-10", "6.1.0-2-cloud-amd64", "6.1.0-3-cloud-amd64"} {
		system(release)
	}
	check("6.1.0-3-cloud-amd64", filepath.Join(h.modules, "6.1.0-3-cloud-amd64"))
	for _, release := range []string{"6.1.0-2-cloud-amd64", "6.1.0-3-cloud-amd64"} {
		if err := os.RemoveAll(filepath.Join(h.modules, release)); err != nil {
			t.Fatal(err)
		}
	}
	check("6.1.0-10", filepath.Join(h.modules, "6.1.0-10"))

	// A shared kernel, and then the caller's own.
	for _, dir := range []string{h.shared, data} {
		writeFiles(t, dir, map[string][]byte{"7.0-00000000/vmlinux": testKernel(pvhEntry, ""), "7.0-00000000/modules/modules.builtin": nil})
		if err := os.Symlink("7.0-00000000", filepath.Join(dir, current)); err != nil {
			t.Fatal(err)
		}
		check("7.0", filepath.Join(dir, "7.0-00000000", "modules"))
	}
	if err := os.Chmod(data, 0o777); err != nil {
		t.Fatal(err)
	}
	if _, err := h.find(Options{Data: data}); !errors.Is(err, paddock.Denied) {
		t.Errorf("a directory that all may write into: %v", err)
	}
}

func TestAKernelIsTakenByName(t *testing.T) {
	h := testHost(t)
	data := t.TempDir()
	writeFiles(t, data, map[string][]byte{
		"at/vmlinux":            testKernel(pvhEntry, ""),
		"at/modules/some.ko":    nil,
		"other/none.ko":         nil,
		"tree/boot/vmlinuz-1":   testImage(testRelease, packed(t, ".gz", testKernel(pvhEntry, ""))),
		"tree/boot/old":         testImage(testRelease, packed(t, ".gz", testKernel(17, ""))),
		"tree/boot/text":        []byte("hello"),
		"tree/boot/cut":         testImage(testRelease, packed(t, ".gz", testKernel(pvhEntry, "")))[:2200],
		"tree/boot/lzo":         testImage(testRelease, []byte("\x89LZO and so on and on")),
		"tree/boot/torn":        testImage(testRelease, packed(t, ".gz", testKernel(pvhEntry, ""))[:40]),
		"tree/boot/nameless":    testImage("../..", packed(t, ".gz", testKernel(pvhEntry, ""))),
		"tree/boot/elf":         testKernel(1, ""),
		"tree/boot/anonymous":   object{note: pvhEntry}.bytes(),
		"tree/lib/modules/x/ko": nil,
	})
	if err := os.Rename(filepath.Join(data, "tree/lib/modules/x"), filepath.Join(data, "tree/lib/modules", testRelease)); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path, modules string
		want          string // directory of modules
		err           string
		kind          paddock.Kind
	}{
		{path: "at/vmlinux", want: "at/modules"},
		{path: "at/vmlinux", modules: "other", want: "other"},
		{path: "tree/boot/vmlinuz-1", want: "tree/lib/modules/" + testRelease},
		{path: "tree/boot/old", err: "no PVH entry", kind: paddock.Unsupported},
		{path: "tree/boot/elf", err: "no PVH entry", kind: paddock.Unsupported},
		{path: "tree/boot/text", err: "neither an ELF file nor a bzImage", kind: paddock.Invalid},
		{path: "tree/boot/cut", err: "cut off", kind: paddock.Invalid},
		{path: "tree/boot/lzo", err: "unknown compression", kind: paddock.Unsupported},
		{path: "tree/boot/torn", err: "unpack it: unexpected EOF"},
		{path: "tree/boot/nameless", err: "does not say which Linux", kind: paddock.Invalid},
		{path: "tree/boot/anonymous", err: "does not say which Linux", kind: paddock.Invalid},
		{path: "tree/boot", err: "not a file", kind: paddock.Invalid},
		{path: "tree/nothing", err: "no such file"},
	} {
		o := Options{Path: filepath.Join(data, tt.path), Data: filepath.Join(data, "kept")}
		if tt.modules != "" {
			o.Modules = filepath.Join(data, tt.modules)
		}
		k, err := h.find(o)
		switch {
		case tt.err != "":
			if err == nil || !strings.Contains(err.Error(), tt.err) || !strings.Contains(err.Error(), o.Path) || !errors.Is(err, tt.kind) && tt.kind != 0 {
				t.Errorf("%s: %v, want %q", tt.path, err, tt.err)
			}
		case err != nil || k.Directory != filepath.Join(data, tt.want) || k.Release != testRelease:
			t.Errorf("%s: %+v, %v", tt.path, k, err)
		}
	}
	left, err := filepath.Glob(filepath.Join(data, "kept", ".new*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

func TestEveryWayToPackAKernelIsUndone(t *testing.T) {
	kernel := testKernel(pvhEntry, strings.Repeat("much of the same, ", 5000))
	tail := []byte{1, 2, 3, 4}
	for name, data := range map[string][]byte{
		"lz4": append(packedLZ4(kernel), tail...), "gzip": packed(t, ".gz", kernel), "plain": kernel,
		"zstd": append(packed(t, ".zst", kernel), tail...), "xz": append(packed(t, ".xz", kernel), tail...),
	} {
		i, err := readImage(testImage(testRelease, data))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := i.unpack(); err != nil || !bytes.Equal(got, kernel) {
			t.Errorf("%s: %d bytes, want %d: %v", name, len(got), len(kernel), err)
		}
	}
}

func TestReleasesAreFoundAcrossPieces(t *testing.T) {
	for _, before := range []int{0, 1, 1<<20 - 20, 1<<20 - 14, 1<<20 - 13, 1<<20 - 1, 1 << 20, 3<<20 + 5} {
		text := strings.Repeat("x", before) + "Linux version %s Linux version 5.4-a (b)"
		if got, err := release(strings.NewReader(text)); got != "5.4-a" || err != nil {
			t.Errorf("after %d bytes: %q, %v", before, got, err)
		}
	}
	for _, text := range []string{"", "Linux version ", "Linux version 5.4", "Linux version ../../etc x"} {
		if got, err := release(io.MultiReader(strings.NewReader(text))); err == nil {
			t.Errorf("%q: %q", text, got)
		}
	}
}

func TestVersionsAreComparedByTheirNumbers(t *testing.T) {
	list := []string{"vmlinuz-6.1.0-10-amd64", "vmlinuz-6.1.0-9-amd64", "vmlinuz-5.15", "vmlinuz-6.12.1", "vmlinuz-6.1.0-09"}
	slices.SortFunc(list, compareVersions)
	want := []string{"vmlinuz-5.15", "vmlinuz-6.1.0-09", "vmlinuz-6.1.0-9-amd64", "vmlinuz-6.1.0-10-amd64", "vmlinuz-6.12.1"}
	if !slices.Equal(list, want) {
		t.Errorf("got %v", list)
	}
}
