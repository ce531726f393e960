install() {
	has npm || lacks npm --with
	npm install --prefix "$top" --no-audit --no-fund --loglevel=error "$@"
}
run() {
	has node || lacks node JavaScript
	enter
	exec node "$@"
}
