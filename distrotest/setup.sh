#!/usr/bin/env bash
# Sets up the tree of a Debian machine that image.sh makes: a user, keys for ssh to loopback, and
# the service that runs what the second disk holds.
set -euo pipefail

root=$1
chroot "$root" useradd --create-home --shell /bin/bash alice
mkdir -p -m 700 "$root/root/.ssh" "$root/home/alice/.ssh"
ssh-keygen -q -t ed25519 -N '' -f "$root/root/.ssh/id_ed25519"
cp "$root/root/.ssh/id_ed25519.pub" "$root/root/.ssh/authorized_keys"
cp "$root/root/.ssh/id_ed25519.pub" "$root/home/alice/.ssh/authorized_keys"
sed 's/^/localhost /' "$root"/etc/ssh/ssh_host_ed25519_key.pub > "$root/etc/ssh/ssh_known_hosts"
chroot "$root" chown -R alice:alice /home/alice

echo machine > "$root/etc/hostname"
printf '127.0.0.1 localhost machine\n' > "$root/etc/hosts"
: > "$root/etc/fstab"
# An emulated machine is slow: nothing in it gives up early.
mkdir -p "$root/etc/systemd/system.conf.d" "$root/etc/systemd/user.conf.d"
printf '[Manager]\nDefaultTimeoutStartSec=20min\nDefaultTimeoutStopSec=5min\n' | tee "$root/etc/systemd/system.conf.d/slow.conf" > "$root/etc/systemd/user.conf.d/slow.conf"
printf 'LoginGraceTime 0\nUseDNS no\n' > "$root/etc/ssh/sshd_config.d/slow.conf"
for unit in apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer e2scrub_reap.service fstrim.timer; do
	ln -sf /dev/null "$root/etc/systemd/system/$unit"
done

cat > "$root/etc/systemd/system/rows.service" <<'UNIT'
[Unit]
After=ssh.service systemd-logind.service

[Service]
Type=simple
ExecStart=/bin/bash -c 'mkdir -p /opt/rows && tar -xf /dev/vdb -C /opt/rows && exec /bin/bash /opt/rows/run.sh'
StandardOutput=journal+console
StandardError=journal+console

[Install]
WantedBy=multi-user.target
UNIT
mkdir -p "$root/etc/systemd/system/multi-user.target.wants"
ln -s ../rows.service "$root/etc/systemd/system/multi-user.target.wants/rows.service"
