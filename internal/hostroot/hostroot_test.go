package hostroot

import (
	"path"
	"slices"
	"strings"
	"testing"
)

func TestListsAreOfCleanAbsolutePaths(t *testing.T) {
	for name, list := range map[string][]string{"SystemDirs": SystemDirs(), "PrivateDirs": PrivateDirs(), "Credentials": Credentials()} {
		if len(list) == 0 {
			t.Errorf("%s is empty", name)
		}
		for i, p := range list {
			if !path.IsAbs(p) || path.Clean(p) != p {
				t.Errorf("%s: %q is not a clean absolute path", name, p)
			}
			if slices.Contains(list[:i], p) {
				t.Errorf("%s: %s is there twice", name, p)
			}
		}
	}
}

func TestCredentialsLieInSystemDirectories(t *testing.T) {
	for _, p := range Credentials() {
		if !slices.ContainsFunc(SystemDirs(), func(dir string) bool { return strings.HasPrefix(p, dir+"/") }) {
			t.Errorf("%s is in no directory that is shown: nothing need hide it", p)
		}
	}
}
