#!/usr/bin/env bash
# Makes the disk of a Debian machine, with its kernel and initial RAM disk:
#
#	image.sh SUITE DIRECTORY
#
# and writes their common prefix. What a disk is made of is in this file and in setup.sh, so that
# a disk whose name has their hash is used again. It needs root, mmdebstrap, mke2fs and unshare.
set -euo pipefail

suite=$1 dir=$2
packages=(
	systemd-sysv udev dbus dbus-user-session libpam-systemd systemd-container uidmap kmod
	linux-image-cloud-amd64 initramfs-tools
	openssh-server openssh-client login passwd procps iproute2
	podman crun
)

self=$(cat "$0" "$(dirname "$0")/setup.sh" | sha256sum)
prefix=$dir/$suite-${self:0:16}
if [ -e "$prefix.ext4" ]; then
	echo "$prefix"
	exit 0
fi

# The archive is the one of this machine: its first source of Debian itself.
archive=$(apt-get indextargets --format '$(ORIGIN)/$(LABEL) $(REPO_URI)' 'Created-By: Packages' | sed -n 's,^Debian/Debian ,,p' | head -n 1)
[ -n "$archive" ] || { echo "this machine's apt knows no archive of Debian" >&2; exit 1; }

mkdir -p "$dir"
rm -f "$dir/$suite"-*
work=$(mktemp -d "$dir/making.XXXXXX")
trap 'rm -rf --one-file-system "$work"' EXIT

# mmdebstrap mounts file systems in the tree. In a mount namespace that ends with it, this machine never
# sees them, and nothing that removes the tree can reach through them.
unshare --mount --propagation private -- mmdebstrap --quiet --mode=root --variant=minbase \
	--include="$(IFS=,; echo "${packages[*]}")" \
	--dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' \
	--customize-hook="\"$(realpath "$(dirname "$0")")\"/setup.sh \"\$1\"" \
	"$suite" "$work/root" "$archive" >&2
cp -L "$work/root/vmlinuz" "$prefix.kernel"
cp -L "$work/root/initrd.img" "$prefix.initrd"
truncate -s 3G "$work/disk"
mke2fs -q -t ext4 -d "$work/root" "$work/disk" >&2
mv "$work/disk" "$prefix.ext4"
echo "$prefix"
