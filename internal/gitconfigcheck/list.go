package gitconfigcheck

import (
	"strings"
	"sync"
)

// allowed returns the checks of the keys that are let through, by name; "*" stands for any subsection. Nobody changes
// the map.
//
// A key is on the list if no value that its check lets through makes git run a program, read or write files elsewhere,
// send anything elsewhere, weaken a check, or take a repository for another. Not on it are, above all: include and
// includeIf, alias, core.hooksPath, core.fsmonitor, core.sshCommand, core.editor, core.pager, core.attributesFile,
// core.alternateRefsCommand, filter, diff and merge drivers, credential, gpg, url, http, protocol, pager, sequence,
// remote.*.uploadpack, receivepack, vcs and proxy, trailer, and gc.recentObjectsHook. Nor is what makes git fetch unasked
// (a promisor remote, from which each command gets missing objects; maintenance.strategy), or choose another remote by itself
// (push.autoSetupRemote, checkout.defaultRemote, remote.*.gh-resolved).
var allowed = sync.OnceValue(func() map[string]check {
	list := map[string]check{}
	add := func(c check, names string) {
		for name := range strings.FieldsSeq(names) {
			list[name] = c
		}
	}
	add(oneOf("0", "1"), `core.repositoryformatversion`)
	add(boolean, `
core.bare core.filemode core.ignorecase core.precomposeunicode core.symlinks core.quotepath core.trustctime core.preloadindex core.fscache
core.longpaths core.commitgraph core.multipackindex core.sparsecheckout core.sparsecheckoutcone core.splitindex core.warnambiguousrefs
user.useconfigonly
remote.*.prune remote.*.prunetags remote.*.mirror remote.*.skipdefaultupdate remote.*.skipfetchall
push.followtags fetch.prune fetch.prunetags fetch.writecommitgraph fetch.showforcedupdates
merge.renames merge.stat merge.autostash rebase.autosquash rebase.autostash rebase.stat rebase.updaterefs rebase.reschedulefailedexec
diff.mnemonicprefix diff.noprefix
status.short status.branch status.showstash status.relativepaths status.aheadbehind commit.status
index.sparse index.skiphash feature.manyfiles gc.autodetach gc.writecommitgraph gc.cruftpacks maintenance.auto
pack.usesparse pack.writebitmaphashcache repack.writebitmaps repack.usedeltabaseoffset
extensions.worktreeconfig extensions.relativeworktrees extensions.noop extensions.preciousobjects
submodule.propagatebranches
receive.denynonfastforwards receive.denydeletes uploadpack.allowfilter
rerere.enabled rerere.autoupdate stash.showpatch stash.showstat stash.showincludeuntracked worktree.guessremote worktree.userelativepaths checkout.guess
log.follow log.abbrevcommit log.mailmap log.showroot grep.linenumber grep.fullname sparse.expectfilesoutsideofpatterns
`)
	add(number, `
core.abbrev core.compression core.loosecompression core.bigfilethreshold core.deltabasecachelimit core.packedgitlimit core.packedgitwindowsize
diff.context diff.interhunkcontext diff.statgraphwidth diff.renamelimit merge.renamelimit index.version
gc.auto gc.autopacklimit gc.aggressivewindow gc.aggressivedepth gc.bigpackthreshold
pack.window pack.depth pack.windowmemory pack.compression pack.indexversion pack.packsizelimit http.postbuffer
`)
	add(several, `fetch.parallel submodule.fetchjobs checkout.workers index.threads pack.threads`)
	add(word, `
core.autocrlf core.eol core.safecrlf core.checkstat core.untrackedcache core.whitespace core.logallrefupdates core.commentchar
user.email author.email committer.email
pull.rebase pull.ff branch.autosetupmerge branch.autosetuprebase branch.sort branch.*.rebase tag.sort
merge.ff merge.conflictstyle merge.directoryrenames merge.log rebase.missingcommitscheck
diff.algorithm diff.renames diff.colormoved diff.colormovedws diff.submodule diff.ignoresubmodules diff.wserrorhighlight diff.indentheuristic
status.showuntrackedfiles status.submodulesummary status.renames commit.cleanup commit.verbose
color.ui color.advice color.branch color.diff color.grep color.interactive color.push color.remote color.showbranch color.status color.transport
color.branch.* color.diff.* color.status.* color.grep.* color.decorate.*
gc.pruneexpire gc.reflogexpire gc.reflogexpireunreachable gc.worktreepruneexpire gc.packrefs
log.date log.decorate column.ui column.branch column.status column.tag versionsort.suffix grep.patterntype
`)
	add(text, `user.name author.name committer.name branch.*.description`)
	add(ref, `init.defaultbranch branch.*.merge remote.*.fetch remote.*.push branch.*.vscode-merge-base branch.*.gk-merge-base notes.displayref notes.rewriteref`)
	add(remote, `branch.*.remote`)
	add(func(v string, j judging) bool { return remoteName(j.sub) && address(v, j) }, `remote.*.url remote.*.pushurl`)
	add(oneOf("sha1", "sha256"), `extensions.objectformat extensions.compatobjectformat`)
	add(oneOf("files", "reftable"), `extensions.refstorage`)
	add(oneOf("0", "1", "2"), `protocol.version`)
	add(pushes, `push.default`)
	add(oneOf("--tags", "--no-tags"), `remote.*.tagopt`)
	add(flagOr("check"), `push.recursesubmodules`)
	add(flagOr("refuse", "warn", "ignore"), `receive.denycurrentbranch receive.denydeletecurrent`)
	add(worktree, `core.worktree`)
	add(submodule(subaddress), `submodule.*.url`)
	add(submodule(flagOr()), `submodule.*.active submodule.*.shallow`)
	add(submodule(oneOf("checkout", "rebase", "merge", "none")), `submodule.*.update`)
	add(submodule(oneOf("none", "untracked", "dirty", "all")), `submodule.*.ignore`)
	add(submodule(oneOf("no", "false", "off", "on-demand")), `submodule.*.fetchrecursesubmodules`)
	add(oneOf("no", "false", "off", "on-demand"), `fetch.recursesubmodules`)
	add(oneOf("no", "false", "off"), `submodule.recurse`)
	add(submodule(func(v string, j judging) bool { return v == "." || ref(v, j) }), `submodule.*.branch`)
	add(func(v string, j judging) bool { return v == "." || plain(v) }, `submodule.active`)
	add(oneOf("0"), `lfs.repositoryformatversion`)
	add(flagOr("none", "basic"), `lfs.*.access lfs.*.locksverify`)
	for _, name := range strings.Fields("detachedHead statusHints skippedCherryPicks defaultBranchName pushNonFFCurrent pushUpdateRejected addIgnoredFile addEmptyPathspec submoduleAlternateErrorStrategyDie diverging") {
		list["advice."+strings.ToLower(name)] = boolean
	}
	return list
})
