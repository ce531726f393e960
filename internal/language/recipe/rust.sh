install() {
	has cargo || lacks cargo --with
	mkdir -p "$top/package/src" && cd "$top/package" && echo 'fn main() {}' >src/main.rs || exit
	printf '[package]\nname = "program"\nversion = "0.0.0"\nedition = "2021"\n' >Cargo.toml
	cargo add --quiet "$@" && cargo fetch --quiet
}
run() {
	has rustc || lacks rustc Rust
	if test -d "$top/package"; then
		(cp "$1" "$top/package/src/main.rs" && cd "$top/package" && cargo build --quiet --release --offline && cp target/release/program "$top/program") || exit
	else
		rustc --edition 2021 -O -o "$top/program" "$1" || exit
	fi
	shift
	enter
	exec "$top/program" "$@"
}
