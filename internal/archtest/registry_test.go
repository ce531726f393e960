package archtest_test

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// registries are hosts of registries of packages, in parts, so that this file
// names none. Which registry is used is a matter of each machine's own
// configuration: a name here would be a wish to reach it.
var registries = regexp.MustCompile(`\b(pypi|pythonhosted|npmjs|yarnpkg|crates|rubygems|packagist|nuget|anaconda|clojars|quay|ghcr)\.(org|com|io|net|dev)\b`)

func TestNoRegistryIsNamed(t *testing.T) {
	dir := root(t)
	files := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if d.Name() == ".git" || path == filepath.Join(dir, ".tmp") { // what tests install is others'
				return filepath.SkipDir
			}
			return nil
		}
		switch filepath.Ext(path) {
		case ".go", ".md", ".yaml", ".yml", ".json", ".txtar", ".sh", ".mod":
		default:
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		if found := registries.FindIndex(data); found != nil {
			t.Errorf("%s:%d names the registry %s", path, 1+bytes.Count(data[:found[0]], []byte("\n")), data[found[0]:found[1]])
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Errorf("%d files were read: %v", files, err)
	}
}
