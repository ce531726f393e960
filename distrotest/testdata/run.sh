#!/bin/bash
# Runs in the machine, as root, once after each of its starts. What it finds goes to the port rows, a
# line each:
#
#	ok NAME
#	fail NAME<tab>what the row wrote
#	skip NAME<tab>why
#	end
cd /opt/rows
port=/dev/virtio-ports/rows
only=$(cat only)   # a regular expression of the rows to try; empty is all
stage=$(cat /var/lib/rows 2>/dev/null || echo 1)
. ./rows.sh

say() { printf '%s\n' "$*" > $port; }

# wanted NAME: the row is to be tried.
wanted() { [ -z "$only" ] || [[ $1 =~ $only ]]; }

# row NAME COMMAND…: a row is well when its command succeeds.
row() {
	local name=$1 began=$SECONDS
	shift
	wanted "$name" || return 0
	( set -eE; trap 'echo "line $LINENO failed: $BASH_COMMAND"' ERR; "$@" ) > /tmp/row 2>&1
	local status=$?
	echo "row $name: $status after $((SECONDS - began)) s" > /dev/console
	if [ $status = 0 ]; then say "ok $name"; else say "fail $name"$'\t'"$(tail -c 3000 /tmp/row | tr '\n\t' '| ')"; fi
}

skip() { ! wanted "$1" || say "skip $1"$'\t'"$2"; }

case $stage in
1)
	echo begun > /var/lib/rows
	sync
	prepare
	rows
	echo 2 > /var/lib/rows
	sync
	systemctl reboot
	;;
2)
	rows_after_reboot
	say end
	systemctl poweroff
	;;
begun)
	say "fail the machine stays up"$'\t'"it restarted by itself while it tried the rows"
	say end
	systemctl poweroff
	;;
esac
