install() {
	if python3 -m pip --version >/dev/null 2>&1; then
		python3 -m pip install --quiet --disable-pip-version-check --no-warn-script-location --target "$libs" "$@"
	elif has uv; then
		uv pip install --quiet --target "$libs" "$@"
	else
		lacks 'pip or uv' --with
	fi
}
run() {
	has python3 || lacks python3 Python
	export PYTHONPATH="$libs${PYTHONPATH:+:$PYTHONPATH}"
	enter
	exec python3 "$@"
}
