package shell

import (
	"strings"
)

// An option is one that set -o or shopt knows.
type option uint8

// Options that the shell asks for.
const (
	oAllexport option = iota
	oBraceexpand
	oEmacs
	oErrexit
	oErrtrace
	oFunctrace
	oHashall
	oHistexpand
	oHistory
	oIgnoreeof
	oInteractiveComments
	oKeyword
	oMonitor
	oNoclobber
	oNoexec
	oNoglob
	oNolog
	oNotify
	oNounset
	oOnecmd
	oPhysical
	oPipefail
	oPosix
	oPrivileged
	oVerbose
	oVi
	oXtrace
	setOptions // how many are set's
)

// Options of shopt.
const (
	oAutocd option = iota + setOptions
	oAssocExpandOnce
	oCdableVars
	oCdspell
	oCheckhash
	oCheckjobs
	oCheckwinsize
	oCmdhist
	oCompat31
	oCompat32
	oCompat40
	oCompat41
	oCompat42
	oCompat43
	oCompat44
	oCompleteFullquote
	oDirexpand
	oDirspell
	oDotglob
	oExecfail
	oExpandAliases
	oExtdebug
	oExtglob
	oExtquote
	oFailglob
	oForceFignore
	oGlobasciiranges
	oGlobskipdots
	oGlobstar
	oGnuErrfmt
	oHistappend
	oHistreedit
	oHistverify
	oHostcomplete
	oHuponexit
	oInheritErrexit
	oInteractiveCommentsShopt
	oLastpipe
	oLithist
	oLocalvarInherit
	oLocalvarUnset
	oLoginShell
	oMailwarn
	oNoEmptyCmdCompletion
	oNocaseglob
	oNocasematch
	oNoexpandTranslation
	oNullglob
	oPatsubReplacement
	oProgcomp
	oProgcompAlias
	oPromptvars
	oRestrictedShell
	oShiftVerbose
	oSourcepath
	oVarredirClose
	oXpgEcho
	optionCount
)

// optionNames are the names, in the order of the constants.
const optionNames = "allexport braceexpand emacs errexit errtrace functrace hashall histexpand history ignoreeof " +
	"interactive-comments keyword monitor noclobber noexec noglob nolog notify nounset onecmd physical pipefail posix " +
	"privileged verbose vi xtrace " +
	"autocd assoc_expand_once cdable_vars cdspell checkhash checkjobs checkwinsize cmdhist compat31 compat32 compat40 " +
	"compat41 compat42 compat43 compat44 complete_fullquote direxpand dirspell dotglob execfail expand_aliases extdebug " +
	"extglob extquote failglob force_fignore globasciiranges globskipdots globstar gnu_errfmt histappend histreedit " +
	"histverify hostcomplete huponexit inherit_errexit interactive_comments lastpipe lithist localvar_inherit " +
	"localvar_unset login_shell mailwarn no_empty_cmd_completion nocaseglob nocasematch noexpand_translation nullglob " +
	"patsub_replacement progcomp progcomp_alias promptvars restricted_shell shift_verbose sourcepath varredir_close xpg_echo"

// options are what is on.
type options [optionCount]bool

// names lists the names of set's options, or of shopt's.
func optionList(set bool) []string {
	all := strings.Fields(optionNames)
	if set {
		return all[:setOptions]
	}
	return all[setOptions:]
}

// findOption finds an option of set, or of shopt.
func findOption(name string, set bool) (option, bool) {
	for i, n := range optionList(set) {
		if n == name {
			if set {
				return option(i), true
			}
			return option(i) + setOptions, true
		}
	}
	if !set && name == "assoc_expand_once" {
		return oAssocExpandOnce, true
	}
	return 0, false
}

// letterOption finds set's option of a letter.
func letterOption(c byte) (option, bool) {
	switch c {
	case 'a':
		return oAllexport, true
	case 'b':
		return oNotify, true
	case 'e':
		return oErrexit, true
	case 'f':
		return oNoglob, true
	case 'h':
		return oHashall, true
	case 'k':
		return oKeyword, true
	case 'm':
		return oMonitor, true
	case 'n':
		return oNoexec, true
	case 'p':
		return oPrivileged, true
	case 't':
		return oOnecmd, true
	case 'u':
		return oNounset, true
	case 'v':
		return oVerbose, true
	case 'x':
		return oXtrace, true
	case 'B':
		return oBraceexpand, true
	case 'C':
		return oNoclobber, true
	case 'E':
		return oErrtrace, true
	case 'H':
		return oHistexpand, true
	case 'P':
		return oPhysical, true
	case 'T':
		return oFunctrace, true
	}
	return 0, false
}

// letters are the letters of $-, in its order.
const letters = "abefhkmnptuvxBCEHPT"

// setDefaults puts on what is on in a new shell.
func (o *options) setDefaults() {
	for _, i := range []option{
		oBraceexpand, oHashall, oInteractiveComments, oCheckwinsize, oCmdhist, oCompleteFullquote, oExtquote,
		oForceFignore, oGlobasciiranges, oGlobskipdots, oHostcomplete, oInteractiveCommentsShopt, oPatsubReplacement,
		oProgcomp, oPromptvars, oSourcepath,
	} {
		o[i] = true
	}
}

// setOption changes an option, with what goes with it.
func (s *Shell) setOption(o option, on bool) {
	s.opt[o] = on
	switch o {
	case oVi:
		if on {
			s.opt[oEmacs] = false
		}
	case oEmacs:
		if on {
			s.opt[oVi] = false
		}
	case oInteractiveComments:
		s.opt[oInteractiveCommentsShopt] = on
	case oInteractiveCommentsShopt:
		s.opt[oInteractiveComments] = on
	case oLocalvarUnset:
		s.vars.RevealLocal(!on)
	case oPosix:
		s.posixVariable(on)
		if on {
			s.opt[oExpandAliases], s.opt[oInheritErrexit] = true, true
		}
	case oExtdebug:
		s.opt[oErrtrace], s.opt[oFunctrace] = on, on
	}
	s.flag(o)
}

// flag tells the expander of an option.
func (s *Shell) flag(o option) {
	f, on := &s.flags, s.opt[o]
	switch o {
	case oNounset:
		f.NoUnset = on
	case oNoglob:
		f.NoGlob = on
	case oBraceexpand:
		f.NoBrace = !on
	case oNullglob:
		f.NullGlob = on
	case oFailglob:
		f.FailGlob = on
	case oExtglob:
		f.ExtGlob = on
	case oNocaseglob:
		f.NoCaseGlob = on
	case oNocasematch:
		f.NoCaseMatch = on
	case oDotglob:
		f.DotGlob = on
	case oGlobstar:
		f.GlobStar = on
	case oGlobskipdots:
		f.DotDirs = !on
	case oPatsubReplacement:
		f.NoPatsub = !on
	case oPosix:
		f.Posix = on
	case oAssocExpandOnce:
		f.AssocOnce = on
	case oExpandAliases:
		f.ExpandAliases = on
	}
}

// setOptions replaces all options.
func (s *Shell) setOptions(o *options) {
	s.opt = *o
	for i := range optionCount {
		s.flag(i)
	}
}

// dash gives $-.
func (s *Shell) dash() string {
	var b []byte
	for i := range len(letters) {
		if letters[i] == 'm' {
			if s.interactive {
				b = append(b, 'i')
			}
		}
		if o, _ := letterOption(letters[i]); s.opt[o] {
			b = append(b, letters[i])
		}
	}
	if s.command {
		b = append(b, 'c')
	}
	if s.stdin {
		b = append(b, 's')
	}
	return string(b)
}

// On tells an option by its name of set -o or shopt.
func (s *Shell) On(name string) bool {
	o, ok := findOption(name, true)
	if !ok {
		o, ok = findOption(name, false)
	}
	return ok && s.opt[o]
}
