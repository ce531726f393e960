module() { test -f go.mod || go mod init program 2>/dev/null; }
install() {
	has go || lacks go Go
	cd "$top/src" && module && go get "$@"
}
run() {
	has go || lacks go Go
	(cd "$top/src" && module && go build -o "$top/program" "./${1##*/}") || exit
	shift
	enter
	exec "$top/program" "$@"
}
