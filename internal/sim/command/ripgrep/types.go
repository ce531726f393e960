package ripgrep

import "strings"

// A fileType is a kind of files that -t names.
type fileType struct {
	name  string
	globs []string
}

// known names the types and their globs.
const known = `ada *.adb *.ads
asciidoc *.adoc *.asc *.asciidoc
asm *.S *.asm *.s
awk *.awk
avro *.avdl *.avpr *.avsc
bat *.bat
bazel *.BUILD *.bazel *.bazelrc *.bzl BUILD MODULE.bazel WORKSPACE WORKSPACE.bazel
c *.[chH] *.[chH].in *.cats
clojure *.clj *.cljc *.cljs *.cljx
cmake *.cmake CMakeLists.txt
coffeescript *.coffee
config *.cfg *.conf *.config *.ini
cpp *.[ChH] *.cc *.[ch]pp *.[ch]xx *.hh *.inl *.[ChH].in *.cc.in *.[ch]pp.in *.[ch]xx.in *.hh.in
crystal *.cr *.ecr Projectfile shard.yml
cs *.cs
csharp *.cs
css *.css *.scss
csv *.csv
cuda *.cu *.cuh
cython *.pxd *.pxi *.pyx
d *.d
dart *.dart
diff *.diff *.patch
docker *Dockerfile*
dockercompose docker-compose.*.yml docker-compose.yml
elisp *.el
elixir *.ex *.eex *.exs *.heex *.leex *.livemd
elm *.elm
erb *.erb
erlang *.erl *.hrl
fish *.fish
fortran *.F *.F77 *.F90 *.F95 *.f *.f77 *.f90 *.f95 *.pfo
fsharp *.fs *.fsi *.fsx
gn *.gn *.gni
go *.go
gradle *.gradle *.gradle.kts gradle-wrapper.* gradle.properties gradlew*
graphql *.graphql *.graphqls
groovy *.gradle *.groovy
h *.h *.hh *.hpp
haml *.haml
haskell *.c2hs *.cpphs *.hs *.hsc *.lhs
hbs *.hbs
html *.ejs *.htm *.html
java *.java *.jsp *.jspx *.properties
jinja *.j2 *.jinja *.jinja2
jl *.jl
js *.cjs *.js *.jsx *.mjs *.vue
json *.json *.sarif composer.lock
jsonl *.jsonl
julia *.jl
jupyter *.ipynb *.jpynb
kotlin *.kt *.kts
less *.less
license COPYING* LICENCE* LICENSE* NOTICE* PATENTS UNLICENSE*
lisp *.el *.jl *.lisp *.lsp *.sc *.scm
lock *.lock package-lock.json
log *.log
lua *.lua
m4 *.ac *.m4
make *.mak *.mk [Gg][Nn][Uu]makefile [Gg][Nn][Uu]makefile.am [Gg][Nn][Uu]makefile.in [Mm]akefile [Mm]akefile.am [Mm]akefile.in
man *.[0-9][cEFMmpSx] *.[0-9lnpx]
markdown *.markdown *.md *.mdown *.mdwn *.mdx *.mkd *.mkdn
matlab *.m
md *.markdown *.md *.mdown *.mdwn *.mdx *.mkd *.mkdn
meson meson.build meson.options meson_options.txt
mk mkfile
ml *.ml
nim *.nim *.nimble *.nimf *.nims
nix *.nix
objc *.h *.m
objcpp *.h *.mm
ocaml *.ml *.mli *.mll *.mly
org *.org *.org_archive
pascal *.dpr *.inc *.lpr *.pas *.pp
pdf *.pdf
perl *.PL *.perl *.pl *.plh *.plx *.pm *.t
php *.php *.php3 *.php4 *.php5 *.php7 *.php8 *.pht *.phtml
po *.po
prolog *.P *.pl *.pro *.prolog
protobuf *.proto
ps *.cdxml *.ps1 *.ps1xml *.psd1 *.psm1
puppet *.epp *.erb *.pp *.rb
py *.py *.pyi
python *.py *.pyi
qml *.qml
r *.R *.Rmd *.Rnw *.r
readme *README README*
rst *.rst
ruby *.gemspec *.rb *.rbw .irbrc Gemfile Rakefile config.ru
rust *.rs
sass *.sass *.scss
scala *.sbt *.scala
sh *.bash *.bashrc *.csh *.cshrc *.ksh *.kshrc *.sh *.tcsh *.zsh .bash_login .bash_logout .bash_profile .bashrc .cshrc .kshrc .login .logout .profile .tcshrc .zlogin .zlogout .zprofile .zshenv .zshrc bash_login bash_logout bash_profile bashrc profile zlogin zlogout zprofile zshenv zshrc
solidity *.sol
sql *.psql *.sql
stylus *.styl
sv *.h *.sv *.svh *.v *.vg
svelte *.svelte
svg *.svg
swift *.swift
systemd *.automount *.conf *.device *.link *.mount *.path *.scope *.service *.slice *.socket *.swap *.target *.timer
tcl *.tcl
tex *.bib *.cls *.dtx *.ins *.ltx *.sty *.tex
tf *.terraform.lock.hcl *.terraformrc *.tf *.tfrc *.tfvars *.tfvars.json terraform.rc
thrift *.thrift
toml *.toml Cargo.lock
ts *.cts *.mts *.ts *.tsx
twig *.twig
txt *.txt
typescript *.cts *.mts *.ts *.tsx
vala *.vala
vb *.vb
verilog *.sv *.svh *.v *.vh
vhdl *.vhd *.vhdl
vim *.vim .gvimrc .vimrc _gvimrc _vimrc gvimrc vimrc
vue *.vue
wgsl *.wgsl
xml *.dtd *.rng *.sch *.xhtml *.xjb *.xml *.xml.dist *.xsd *.xsl *.xslt
yaml *.yaml *.yml
zig *.zig
zsh *.zsh .zlogin .zlogout .zprofile .zshenv .zshrc zlogin zlogout zprofile zshenv zshrc
`

// types lists the types that are known without being told.
func types() []fileType {
	var list []fileType
	for line := range strings.Lines(known) {
		words := strings.Fields(line)
		list = append(list, fileType{words[0], words[1:]})
	}
	return list
}
