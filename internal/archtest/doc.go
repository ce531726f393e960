// Package archtest holds the rules of this source tree as plain tests: who may
// import whom, what no package may contain, that the documents tell the truth
// about the code, and that the commands of the README work.
//
// Each rule has its reason in its row. Whoever needs to cross one changes the
// row in the same commit, and so has to say why.
package archtest
