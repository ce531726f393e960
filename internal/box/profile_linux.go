package box

import (
	"github.com/paddock-sandbox/paddock/internal/boxinit"
)

// profileFile is the file that login shells of the Bourne family execute first.
const profileFile = "/etc/profile"

// loginShells makes login shells keep the PATH with which they were started, before the
// directories that the system's profile names. The profile of Debian replaces PATH, so that
// `bash -l -c`, with which E2B's clients run every command, found other programs than a
// command that is started directly. A profile that cannot be read stays as it is.
func (l *Layout) loginShells() {
	t := tree{base: "/"}
	at, there := t.find(profileFile)
	if !there {
		return
	}
	if text, err := t.read(at); err == nil {
		l.Add(boxinit.Mount{Kind: boxinit.MountReplace, Target: at, Source: keepingPath(text), Mode: 0o644, IsFile: true})
	}
}

// keepingPath puts the present PATH before the one that a profile sets.
func keepingPath(profile string) string {
	return "paddock_path=${PATH-}\n" + profile + `
if [ -n "$paddock_path" ]; then
	paddock_rest=${PATH-}:
	PATH=$paddock_path
	while [ -n "$paddock_rest" ]; do
		paddock_dir=${paddock_rest%%:*}
		paddock_rest=${paddock_rest#*:}
		case "$paddock_dir:$PATH:" in
		:* | *":$paddock_dir:"*) ;;
		*) PATH=$PATH:$paddock_dir ;;
		esac
	done
	export PATH
	unset paddock_rest paddock_dir
fi
unset paddock_path
`
}
