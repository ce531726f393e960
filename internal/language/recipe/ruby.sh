install() {
	has gem || lacks gem --with
	gem install --quiet --no-document --install-dir "$libs" "$@"
}
run() {
	has ruby || lacks ruby Ruby
	export GEM_HOME="$libs"
	enter
	exec ruby "$@"
}
