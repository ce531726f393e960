package git

import "strings"

// diffOther is for the ways of diff that are not done here: they are refused,
// rather than answered with something else.
func (*work) diffOther(_ []string, o *options) error {
	for _, f := range []string{"--word-diff", "--color-words", "-w", "-b", "--ignore-all-space", "--ignore-space-change", "--ignore-blank-lines", "--no-index", "--raw", "--check", "--src-prefix", "--dst-prefix"} {
		if o.has(f) {
			return fail("diff %s is not supported in this sandbox: diff %s of the files does the like", f, strings.TrimLeft(f, "-"))
		}
	}
	return nil
}
