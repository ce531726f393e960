run() {
	has g++ || lacks g++ C++
	g++ -O2 -o "$top/program" "$1" || exit
	shift
	enter
	exec "$top/program" "$@"
}
