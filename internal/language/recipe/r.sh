install() {
	has Rscript || lacks Rscript R
	Rscript -e 'all <- commandArgs(TRUE); dir <- all[1]; names <- all[-1]
	install.packages(names, lib = dir, quiet = TRUE)
	missing <- setdiff(names, rownames(installed.packages(dir)))
	if (length(missing)) stop("not installed: ", paste(missing, collapse = ", "))' "$libs" "$@"
}
run() {
	has Rscript || lacks Rscript R
	export R_LIBS="$libs${R_LIBS:+:$R_LIBS}"
	test -z "${PADDOCK_ARTIFACTS-}" || export R_PROFILE_USER="$top/plots.R"
	enter
	exec Rscript "$@"
}
