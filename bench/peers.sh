#!/usr/bin/env bash
# Installs the peers that `make bench` measures beside Paddock, and prints
# nothing else. With -where it prints the directory that holds them:
#
#   node  srt.js  srt.json     Anthropic's sandbox-runtime with its own Node.js
#   justbash.mjs               just-bash, as bench/justbash.mjs uses it
#   runsc                      gVisor's own command, of the version in go.mod
#   crane                      the command of go-containerregistry, of the version in go.mod
#
# bubblewrap, crun, socat and ripgrep (which srt needs) are Debian packages.
# Nothing of this is needed by Paddock itself.
set -euo pipefail

srt=0.0.83
justbash=3.4.2
node=22.23.3 # srt wants 22.12 or later, Debian has older ones
top=/var/tmp/paddock-bench-$(id -u) # not the home: other users measure it too
dir=$top/srt-$srt-just-bash-$justbash-node-$node
here=$(cd "$(dirname "$0")" && pwd)

if [ "${1-}" = -where ]; then
	echo "$dir"
	exit 0
fi

# Go has built it before, mostly: this is quick then.
runsc() {
	(cd "$here/.." && CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o "$dir/runsc" gvisor.dev/gvisor/runsc)
}

# Its own dependencies are not ours, so that it is built by itself.
crane() {
	local version
	version=$(cd "$here/.." && go list -m -f '{{.Version}}' github.com/google/go-containerregistry)
	GOBIN=$dir GOFLAGS= CGO_ENABLED=0 go install "github.com/google/go-containerregistry/cmd/crane@$version"
}

"$here/../.ci/deps" bwrap:bubblewrap crun:crun socat:socat rg:ripgrep npm:npm
if [ -O "$dir/ready" ]; then
	cp "$here/justbash.mjs" "$dir/"
	runsc
	crane
	exit 0
fi

case $(uname -m) in
x86_64) arch=x64 ;;
aarch64) arch=arm64 ;;
*) echo "there is no Node.js package for $(uname -m)" >&2; exit 1 ;;
esac
mkdir -p "$top"
[ -O "$top" ] || { echo "$top belongs to someone else" >&2; exit 1; }
rm -rf "$dir"
mkdir -p "$dir"
cd "$dir"
echo '{"private": true}' >package.json
npm install --silent --no-audit --no-fund --save-exact \
	"@anthropic-ai/sandbox-runtime@$srt" "just-bash@$justbash" "node-linux-$arch@$node" >/dev/null
ln -s "node_modules/node-linux-$arch/bin/node" node
ln -s node_modules/@anthropic-ai/sandbox-runtime/dist/cli.js srt.js
# The smallest settings: no network, write nowhere but the defaults.
cat >srt.json <<'JSON'
{"network": {"allowedDomains": [], "deniedDomains": []}, "filesystem": {"denyRead": [], "allowWrite": [], "denyWrite": []}}
JSON
cp "$here/justbash.mjs" .
./node srt.js --settings srt.json true
runsc
crane
chmod -R a+rX "$dir"
touch ready
