# The rows: what an ordinary machine with systemd promises to root, to a user and to a service.

paddock=/usr/local/bin/paddock
# The jail of Linux 6.1 has no Landlock that knows cutting files short, which its caller has to accept by name.
# A tenant of a server cannot.
jail="--tier jail" kept_tier=jail
if [ "$(uname -r | sed 's/^\([0-9]*\)\.\([0-9]*\).*/\1\2/')" = 61 ]; then jail+=" --allow-missing landlock" kept_tier=gvisor; fi
saved=/home/alice/.local/share/paddock/gvisor # alice's sandboxes that are paused

# A real session each: its scope, its runtime directory and, for alice, her service manager. It stays between
# commands, as that of a person does, because sandboxes of a user end with the last session. Another one is anew.
session() { timeout 1200 ssh -q -o ControlMaster=auto -o ControlPersist=yes -o ControlPath=/run/session-%r "$@"; }
alice() { session alice@localhost "$@"; }
root() { session root@localhost "$@"; }
anew() { timeout 1200 ssh -q alice@localhost "$@"; }

# has TEXT WORD, lacks TEXT WORD
has() { [[ $1 == *"$2"* ]] || { printf 'no "%s" in: %s\n' "$2" "$1"; return 1; }; }
lacks() { [[ $1 != *"$2"* ]] || { printf '"%s" in: %s\n' "$2" "$1"; return 1; }; }

# tier TEXT TIER: the tier of a sandbox, in the text of inspect --json or create --json.
tier() { has "$1" "\"tier\": \"$2\""; }

prepare() {
	install -m 755 paddock $paddock
	useradd --system --home-dir /var/lib/paddock --shell /usr/sbin/nologin paddock
	install -d -m 750 -g paddock /etc/paddock
	echo 0123456789abcdef0123456789abcdef | install -m 640 -g paddock /dev/stdin /etc/paddock/key
	printf 'listen: 127.0.0.1:7463\nstate: /var/lib/paddock\nkey-file: /etc/paddock/key\naudit: /var/lib/paddock/audit\n' |
		install -m 640 -g paddock /dev/stdin /etc/paddock/paddock.yaml
	install -m 644 paddock.service /etc/systemd/system/
	if [ "$(systemctl --version | sed -n '1s/^systemd \([0-9]*\).*/\1/p')" -lt 254 ]; then
		install -m 644 paddock-sandboxes.service /etc/systemd/system/
		install -D -m 644 paddock-sandboxes.conf /etc/systemd/system/paddock.service.d/sandboxes.conf
	fi
	systemctl daemon-reload
}

# server COMMAND…: a command of paddock that asks the unit's server.
server() { PADDOCK_SERVER=http://127.0.0.1:7463 PADDOCK_KEY=0123456789abcdef0123456789abcdef timeout 1200 $paddock "$@"; }

# ready: the unit's server takes calls.
ready() { timeout 600 bash -c "until (exec 3<>/dev/tcp/127.0.0.1/7463) 2>/dev/null; do sleep 1; done"; }

rows() {
	row "B1: a user's run has the limits that it asks for" user_run
	row "B1: root's run has the limits that it asks for" root_run
	row "B1: a jail in a group that was delegated by hand runs" delegated_run
	row "B1: a jail in a group that root has given away runs" chowned_run
	row "B1: a memory limit is the kernel's" memory_is_bound
	row "B1: a user's create has limits, and the sandbox can be used" user_create
	row "B1: root's create has limits" root_create
	row "B1: a user's fork has limits" user_fork
	row "B1: a user's server has limits, also with a sim sandbox first" user_serve
	row "B1: what is not delegated is refused with a remedy that works" undelegated
	row "B1: a user without a session has limits where the manager lingers" lingering
	row "B1: the unit makes sandboxes with limits, and gvisor is auto" unit_create
	row "B1: sandboxes of the unit keep their limits over a restart" unit_restart
	row "B1: sandboxes of the unit keep their limits over a crash" unit_crash
	row "A: a sandbox of the unit sees nothing that is the unit's alone" unit_secrets
	if [ $kept_tier = jail ]; then
		row "B1: a weaker tier than usual is told to the caller" weaker_told
	else
		skip "B1: a weaker tier than usual is told to the caller" "the jail of this kernel has to be asked for by name"
	fi
	row "B2: a paused sandbox is there after a logout" paused_over_logout
	row "B3: a user without groups forks" fork_without_groups
	row "B4: addresses of common networks are reached from gvisor" common_addresses
	row "B5: sim runs on this kernel" sim_runs
	row "B5: a jail runs, or run and doctor name the kernel's lack" jail_words
	row "B5: run and doctor name the same sysctl" same_sysctl
	row "B6: doctor of one tier does not call it auto" doctor_tier
	row "B6: doctor of a session tells the limits of a run" doctor_session
	row "B6: doctor looks at a unit's group" doctor_unit
	row "B6: a container gets on with the remedy of doctor (rootless podman)" container_remedy
	row "B2: sandboxes are paused before a reboot" pause_before_reboot
}

rows_after_reboot() {
	row "B1: the unit starts after a reboot, and makes sandboxes with limits" unit_after_reboot
	row "B2: a user's paused sandbox is there after a reboot" still_there alice reboot
	row "B2: root's paused sandbox is there after a reboot" still_there root reboot
	row "B2: the unit's paused sandbox is there after a reboot" unit_still_there
	row "B2: saved memory that nobody knows is listed, and can be removed" orphan_removed
	row "B2: what a reboot left of a pause is removed" rest_removed
}

# --- B1

user_run() {
	alice paddock run $jail --memory 64M --cpus 0.5 --pids 50 -- true
	alice paddock run --tier gvisor --memory 256M -- true
	has "$(alice paddock run $jail --memory 64M --json -- true)" memory.max
}

root_run() {
	root paddock run $jail --memory 64M --cpus 0.5 --pids 50 --io 10M -- true
	root paddock run --tier gvisor --memory 256M -- true
	has "$(root paddock run $jail --memory 64M --json -- true)" memory.max
}

delegated_run() {
	alice systemd-run --user --scope -q -p Delegate=yes paddock run $jail --memory 64M -- true
	alice systemd-run --user --wait --pipe -q -p Delegate=yes paddock run $jail --memory 64M -- true
	systemd-run --wait --pipe -q -p Delegate=yes -p User=alice paddock run $jail --memory 64M -- true
	systemd-run --scope -q -p Delegate=yes paddock run $jail --memory 64M -- true
}

# in_group DIR COMMAND…: alice's command, alone in a group.
in_group() {
	local dir=$1
	shift
	dir=$dir HOME=/home/alice bash -c 'echo $$ > "$dir/cgroup.procs"; exec setpriv --reuid 1000 --regid 1000 --clear-groups "$@"' - "$@"
}

chowned_run() {
	local whole=/sys/fs/cgroup/whole half=/sys/fs/cgroup/half
	mkdir $whole $half
	chown alice $whole $whole/cgroup.{procs,threads,subtree_control} $half $half/cgroup.procs
	in_group $whole paddock run $jail --memory 64M -- true
	# What cannot be divided still makes sandboxes with a watchdog, as everywhere.
	in_group $half paddock run $jail -- true
	rmdir $whole/* $whole $half/* $half 2> /dev/null || true
}

memory_is_bound() {
	local status=0
	alice "paddock run $jail --memory 64M -- sh -c 'head -c 200000000 /dev/zero | tail -c 150000000 > /dev/null'" || status=$?
	[ $status = 137 ] || { echo "status $status"; return 1; }
}

user_create() {
	local id
	id=$(alice paddock create $jail --memory 64M --pids 50)
	[ "$(alice paddock exec "$id" -- echo inside)" = inside ]
	has "$(anew paddock inspect --json "$id")" memory.max
	grep -q 67108864 /sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice/paddock-*.scope/paddock-"$id"-*/memory.max
	alice paddock rm "$id"
}

root_create() {
	local id
	id=$(root paddock create $jail --memory 64M --io 10M)
	has "$(root paddock inspect --json "$id")" memory.max
	root paddock rm "$id"
}

user_fork() {
	local id fork
	id=$(alice paddock create --tier gvisor --memory 256M)
	fork=$(alice paddock fork "$id")
	has "$(alice paddock inspect --json "$fork")" memory.max
	alice paddock rm "$id" "$fork"
}

user_serve() {
	alice "jail='$jail';"'set -e
		XDG_STATE_HOME=/tmp/alice paddock serve --listen unix:/tmp/alice.sock --state /tmp/alice.state > /tmp/alice.log 2>&1 &
		until [ -S /tmp/alice.sock ]; do sleep 1; done
		export PADDOCK_SERVER=unix:/tmp/alice.sock
		s=$(paddock create --tier sim)
		j=$(paddock create $jail --memory 64M)
		paddock inspect --json $j
		paddock rm $s $j
		kill %1; wait' > /tmp/serve 2>&1 || { cat /tmp/serve /tmp/alice.log; return 1; }
	has "$(cat /tmp/serve)" memory.max
}

# The io controller is not delegated to users on these systems, whatever else is.
undelegated() {
	local said
	said=$(alice paddock run $jail --io 10M -- true 2>&1) && { echo "it was not refused"; return 1; }
	has "$said" /etc/systemd/system/user@.service.d/delegate.conf
	[ "$(grep -c delegate.conf <<< "$said")" = 1 ]
	# The remedy, and a user manager that starts anew.
	mkdir -p /etc/systemd/system/user@.service.d
	printf '[Service]\nDelegate=cpu memory pids io\n' > /etc/systemd/system/user@.service.d/delegate.conf
	systemctl daemon-reload
	systemctl restart user@1000.service || systemctl start user@1000.service
	alice paddock run $jail --io 10M -- true
}

lingering() {
	loginctl terminate-user alice || true
	timeout 600 bash -c 'while [ -e /run/user/1000/systemd/private ]; do sleep 1; done'
	loginctl enable-linger alice
	timeout 600 bash -c 'until [ -S /run/user/1000/systemd/private ]; do sleep 1; done'
	setsid -w su -l alice -c "paddock run $jail --memory 64M -- true"
	loginctl disable-linger alice
}

unit_create() {
	local made id
	systemctl start paddock
	ready
	made=$(server create --json --memory 256M)
	tier "$made" gvisor
	has "$made" memory.max
	id=$(sed -n 's/^ *"id": "\(.*\)",$/\1/p' <<< "$made" | head -n 1)
	[ "$(server exec "$id" -- echo inside)" = inside ]
	server rm "$id"
}

# limits ID BYTES: the group of a sandbox of the unit has this limit.
limits() {
	local file
	for file in /sys/fs/cgroup/{system.slice/paddock.service,paddock.slice/paddock-sandboxes.service}/paddock-"$1"-*/memory.max; do
		[ "$(cat "$file" 2> /dev/null)" != "$2" ] || return 0
	done
	echo "no group of $1 has a limit of $2"
	systemd-cgls --no-pager || true
	return 1
}

# kept HOW…: a sandbox outlives what is done to the unit, with its limit, and another one can be made.
kept() {
	local id another
	systemctl start paddock
	ready
	id=$(server create --tier $kept_tier --memory 256M)
	limits "$id" 268435456
	"$@"
	timeout 600 bash -c 'until systemctl is-active -q paddock; do sleep 1; done'
	ready
	systemctl is-active paddock
	limits "$id" 268435456
	[ "$(server exec "$id" -- echo inside)" = inside ]
	another=$(server create --tier $kept_tier --memory 256M)
	limits "$another" 268435456
	server rm "$id" "$another"
}

unit_restart() { kept systemctl restart paddock; }

crash() {
	local main
	main=$(systemctl show -p MainPID --value paddock)
	kill -9 "$main"
	timeout 600 bash -c "while [ \"\$(systemctl show -p MainPID --value paddock)\" = $main ]; do sleep 1; done"
}

unit_crash() { kept crash; }

# The unit's files are its group's, and its sandboxes have the same user and group.
unit_secrets() {
	local tier id said
	install -m 640 -g paddock /dev/stdin /etc/other.conf <<< "word of the group"
	install -d /opt/tool
	install -m 600 -o paddock /dev/stdin /opt/tool/.env <<< "word of the user"
	systemctl start paddock
	ready
	for tier in $kept_tier gvisor; do
		id=$(server create --tier $tier)
		said=$(server exec "$id" -- sh -c 'cat /etc/hostname /etc/paddock/* /etc/other.conf /opt/tool/.env /var/lib/paddock/*; ls -A /etc/paddock' 2>&1) || true
		server rm "$id"
		has "$said" machine
		lacks "$said" 0123456789abcdef
		lacks "$said" paddock.yaml
		lacks "$said" word
	done
}

# gvisor shows no whole tree of the host.
weaker_told() {
	local said
	said=$(root "cd / && paddock run --mode full -- true" 2>&1) || { echo "$said"; return 1; }
	has "$said" "the sandbox is on tier jail, because tier gvisor could not make it"
	said=$(root "cd / && paddock create --mode full" 2>&1) || { echo "$said"; return 1; }
	has "$said" "the sandbox is on tier jail, because tier gvisor could not make it"
	root paddock rm --all -f
}

unit_after_reboot() {
	systemctl enable --now paddock
	ready
	local id
	id=$(server create --tier $kept_tier --memory 256M)
	limits "$id" 268435456
	server rm "$id"
}

# --- B2

# pause_one USER NAME
pause_one() {
	local id
	id=$($1 paddock create --tier gvisor --memory 256M --name "$2")
	$1 paddock exec "$id" -- touch "/tmp/kept-$2"
	$1 paddock pause "$id"
}

still_there() {
	has "$($1 paddock ls)" "$2"
	$1 paddock resume "$2"
	has "$($1 paddock exec "$2" -- ls /tmp)" "kept-$2"
	$1 paddock rm "$2"
}

logged_out() {
	loginctl terminate-user alice || true
	timeout 600 bash -c 'while [ -e /run/user/1000 ]; do sleep 1; done'
}

paused_over_logout() {
	pause_one alice logout
	logged_out
	still_there alice logout
}

# What a reboot ends while a pause is written has no memory that is whole. An earlier version wrote no
# record of whose the memory is.
pause_before_reboot() {
	systemctl start paddock
	ready
	pause_one alice orphan
	local orphan
	orphan=$(dirname $saved/*/sandbox.json)
	rm "$orphan/sandbox.json"
	echo "${orphan##*/}" > /var/lib/orphan
	install -d -m 700 -o alice -g alice "${orphan}rest"
	pause_one alice reboot
	pause_one root reboot
	pause_one server_does reboot
}

# server_does paddock …: the arguments of a call by ssh.
server_does() {
	shift
	server "$@"
}

unit_still_there() {
	systemctl start paddock
	ready
	still_there server_does reboot
}

orphan_removed() {
	local orphan
	orphan=$(cat /var/lib/orphan)
	has "$(alice paddock ls -q)" "$orphan"
	alice paddock rm "$orphan"
	[ ! -e "$saved/$orphan" ]
	lacks "$(alice paddock ls -q)" "$orphan"
}

rest_removed() {
	alice paddock ls
	[ ! -e "$saved/$(cat /var/lib/orphan)rest" ] || { ls -l $saved; return 1; }
}

# --- B3

fork_without_groups() {
	systemd-run --wait --pipe -q -p User=alice -p Environment=PADDOCK_STATE=/tmp/without bash -c '
		set -e
		id=$(paddock create --tier gvisor)
		fork=$(paddock fork "$id")
		paddock exec "$fork" -- true
		paddock rm "$id" "$fork"'
}

# --- B4

common_addresses() {
	ip link add common type dummy
	ip addr add 10.0.2.2/24 dev common
	ip addr add 10.0.2.15/24 dev common
	ip link set common up
	for a in 10.0.2.2 10.0.2.15; do
		systemd-socket-activate -l $a:8080 --inetd -a /bin/echo reached &
		local listener=$!
		timeout 60 bash -c "until ss -ltn | grep -q $a:8080; do sleep 1; done"
		has "$(paddock run --tier gvisor --allow $a:8080 -- bash -c "cat < /dev/tcp/$a/8080")" reached
		kill $listener
	done
	ip link del common
}

# --- B5

sim_runs() { has "$(alice "paddock run --tier sim 'echo simulated'" 2>&1)" simulated; }

# run and doctor name the same lack and the same remedy, and accepting the lack is enough.
jail_words() {
	local said
	if [ $kept_tier != jail ]; then
		said=$(alice paddock run --tier jail -- true 2>&1) && { echo "it ran"; return 1; }
		echo "$said"
		has "$said" "Landlock version 2"
		has "$said" "use Linux 6.2 or later"
		said=$(alice paddock doctor --tier jail || true)
		has "$said" "Landlock version 2"
		has "$said" "use Linux 6.2 or later"
	fi
	alice paddock run $jail -- true
}

same_sysctl() {
	local said
	sysctl -q user.max_user_namespaces=0
	said=$(alice "paddock run -- true" 2>&1) && { echo "it ran"; return 1; }
	has "$said" user.max_user_namespaces
	has "$(alice paddock doctor || true)" user.max_user_namespaces
	sysctl -q user.max_user_namespaces=15000
	alice paddock run $jail -- true
}

# --- B6

doctor_tier() { lacks "$(alice paddock doctor --tier jail)" "auto is"; }

doctor_session() {
	local said
	said=$(alice paddock doctor)
	has "$said" "memory.max and memory.swap.max of cgroup v2"
	has "$said" "--tier auto is gvisor"
	lacks "$said" systemd-run
}

doctor_unit() {
	systemctl start paddock
	ready
	has "$(server doctor --server http://127.0.0.1:7463)" "memory.max and memory.swap.max of cgroup v2"
}

# in_container OPTION… IMAGE COMMAND…: as a user of rootless Podman who is not root inside.
in_container() { alice podman run --rm --network none --user 1000 "$@"; }

container_remedy() {
	local tree=/tmp/tree file said options
	mkdir -p $tree/{usr/bin,usr/lib,usr/lib64,etc,proc,sys,dev}
	install -d -m 1777 $tree/tmp
	ln -s usr/bin usr/lib usr/lib64 $tree
	for file in bash cat true; do install /usr/bin/$file $tree/usr/bin; done
	ln -s bash $tree/usr/bin/sh
	install $paddock $tree/usr/bin
	for file in $(ldd $tree/usr/bin/{bash,cat,true} | grep -o '/[^ ]*[0-9]'); do install -D "$(realpath "$file")" "$tree$file"; done
	tar -C $tree -c . | alice podman import -q - box
	said=$(in_container box paddock doctor --tier jail) || true
	options=$(tr -s '[:space:]' ' ' <<< "$said" | grep -o 'run the container with --security-opt [^;,]*' | head -n 1) # a remedy goes over several lines
	options=${options#run the container with }
	[ -n "$options" ] || { echo "$said"; return 1; }
	echo "$options"
	in_container $options box paddock run $jail -- true
}
