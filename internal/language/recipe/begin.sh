# What every recipe begins with: sh -c RECIPE paddock-language TOP ACTION ARGUMENT…
top=$1 libs=$1/libs
action=$2
shift 2
lacks() {
	echo "paddock: $2 needs $1, and there is none here" >&2
	exit 127
}
has() { command -v "$1" >/dev/null 2>&1; }
# A program writes where its files are taken from, unless it has a directory of yours.
enter() { test -z "${PADDOCK_ARTIFACTS-}" || test -n "${PADDOCK_STAYS-}" || cd "$PADDOCK_ARTIFACTS" || exit; }
