package protect

import "strings"

// A row of the table lists names that one program obeys.
type row struct {
	reason  string // why the names are protected, in the words of the documents
	program string // which obeys them
	when    string // on what occasion, which the user starts for another purpose
	source  string // documentation of the program, or its source file, that says so
	names   string // separated by spaces
}

const (
	whyGit        = "git runs programs that it names, or looks for them where it points"
	whyVCS        = "a version control system runs programs that it names, or looks for them where it points"
	whyFound      = "a version control system takes the directory for a repository, and obeys what is in it"
	whyShell      = "a shell or login on the host executes it"
	whyREPL       = "an interpreter or debugger started in its directory executes it"
	whyTool       = "a command-line tool reads options from it that name programs or servers"
	whyEditor     = "an editor that opens the directory runs tasks or loads settings from it"
	whyAgent      = "a coding agent on the host takes commands, servers or permissions from it"
	whyCredential = "it holds credentials, or decides which are used"
	whyDesktop    = "the session or the system of the host starts what it names"
	whyPrograms   = "it holds programs of the user that PATH or another program finds"
	whyPaddock    = "it decides what sandboxes may do"
)

// Occasions that several rows share.
const (
	everyCommand = "each command in the workspace, also of a prompt that shows the state"
	atStart      = "its start in the workspace"
	fromHome     = "its start, if the workspace is a home"
	onOpen       = "opening the directory"
)

// repositories lists directories that may be used where the host made them, and not be made. A
// commit writes in them, so only a part of each can be protected.
func repositories() []row {
	return []row{
		{whyFound, "Mercurial", everyCommand, "mercurial/cmdutil.py: findrepo", ".hg"},
		{whyFound, "Jujutsu", everyCommand, "jj cli/src/cli_util.rs: find_workspace_dir", ".jj"},
		{whyFound, "Sapling", everyCommand, "sapling eden/scm/lib/identity: sniff_root", ".sl .git/sl"},
		{whyFound, "Breezy, Bazaar", everyCommand, "breezy/controldir.py: open_containing", ".bzr"},
		{whyFound, "darcs", everyCommand, "darcs src/Darcs/Repository/Identify.hs: seekRepo", "_darcs"},
		{whyFound, "Game of Trees", everyCommand, "got(1), FILES", ".got"},
	}
}

// obeyed lists what nothing in a sandbox may make or change.
//
// Left writable below .git, so that committing works: objects, refs, logs, index, HEAD,
// packed-refs, ORIG_HEAD, FETCH_HEAD, COMMIT_EDITMSG and locks. In the other repositories it is
// everything that is not listed. Some of git's names are judged by content: see contents.
func obeyed() []row {
	return []row{
		{whyGit, "git", "commit, checkout, merge, push and others", "githooks(5)", ".git/hooks .git/worktrees/*/hooks"},
		{whyGit, "git", everyCommand, "git-config(1), FILES", ".git/config .git/config.worktree .git/worktrees/*/config.worktree .git/worktrees/*/config .gitconfig .config/git"},
		{whyGit, "git", everyCommand, "gitattributes(5)", ".git/info/attributes"},
		{whyGit, "git", everyCommand, "gitrepository-layout(5)", ".git/commondir .git/gitdir .git/worktrees/*/commondir .git/worktrees/*/gitdir"},
		{whyGit, "git", everyCommand, "gitrepository-layout(5), objects/info/alternates", ".git/objects/info/alternates"},
		{whyGit, "git", "everyday commands with submodules", "gitsubmodules(7)", ".git/modules"},
		{whyGit, "git", "fetch and push", "gitremote-helpers(7); git-push(1), GIT URLS", ".git/remotes .git/branches"},
		{whyGit, "git-branchless", everyCommand, "git-branchless-init: include.path", ".git/branchless/config"},
		{whyVCS, "Mercurial", everyCommand, "hg help config, Files", ".hg/hgrc .hg/hgrc-not-shared .hgrc .config/hg"},
		{whyVCS, "Mercurial", everyCommand, "mercurial/localrepo.py: makelocalrepository", ".hg/sharedpath .hg/requires .hg/store/requires"},
		{whyVCS, "hg-git", "pull and push", "hg-git README, git.intree", ".hg/git/config .hg/git/hooks"},
		{whyVCS, "Jujutsu", everyCommand, "jj docs/config.md; jj lib/src/secure_config.rs", ".jj/repo/config.toml .jj/repo/config-id .jj/workspace-config.toml .jj/workspace-config-id .jjconfig.toml .config/jj"},
		{whyVCS, "Jujutsu", everyCommand, "jj lib/src/git_backend.rs; lib/src/workspace.rs", ".jj/repo/store/git_target .jj/repo/store/type .jj/repo/store/git/config .jj/repo/store/git/hooks .jj/repo/store/git/commondir .jj/working_copy/type"},
		{whyVCS, "Sapling", everyCommand, "sl help config, Files", ".sl/config .sl/hgrc .sl/hgrc.dynamic .sl/sharedpath .sl/requires .sl/store/requires .git/sl/config .git/sl/hgrc.dynamic .config/sapling"},
		{whyVCS, "Sapling", everyCommand, "sapling eden/scm/lib/repo: git store", ".sl/store/git/config .sl/store/git/hooks .sl/store/git/commondir"},
		{whyVCS, "Sapling, Mercurial", everyCommand, "sapling eden/scm/lib/identity", ".hg/config .hg/hgrc.dynamic"},
		{whyVCS, "Breezy, Bazaar", "commit", "breezy/commit.py: post_commit; brz help configuration", ".bzr/branch/branch.conf .bzr/control.conf"},
		{whyVCS, "Breezy, Bazaar", everyCommand, "breezy/bzr/branch.py; breezy/bzr/bzrdir.py", ".bzr/branch/location .bzr/branch/format .bzr/branch-format"},
		{whyVCS, "Breezy, Bazaar", fromHome, "brz help configuration, plug-ins", ".bazaar .config/breezy .config/bazaar"},
		{whyVCS, "Subversion", "commit and update of the place that it names, with its hooks if that is a file URL", "svn wc-db: REPOSITORY; svnadmin hooks", ".svn"},
		{whyVCS, "Subversion", fromHome, "svn config: tunnels, auth", ".subversion"},
		{whyVCS, "Fossil", "each command: it names the repository, with its hooks and settings", "fossil src/db.c: db_open_local; fossil help settings", ".fslckout _FOSSIL_ .fslckout-journal .fslckout-wal _FOSSIL_-journal _FOSSIL_-wal .fossil .config/fossil.db"},
		{whyVCS, "Pijul", "pijul record: its settings name hooks, and it keeps which hooks of the project are approved", "pijul-config src/lib.rs: Hooks; pijul src/commands/hooks.rs", ".pijul .config/pijul"},
		{whyVCS, "darcs", "each command: pre- and posthooks are options", "darcs manual, Configuring: defaults", "_darcs/prefs _darcs/format .darcs .config/darcs"},
		{whyVCS, "Game of Trees", everyCommand, "got.conf(5); got-worktree(5)", ".got/got.conf .got/repository"},
		{whyVCS, "Monotone", everyCommand, "mtn manual, Hooks: _MTN/monotonerc", "_MTN .monotone"},
		{whyVCS, "repo", "each repo command executes .repo/repo/main.py", "git-repo: repo launcher", ".repo"},
		{whyVCS, "Perforce", "each p4 command, if P4CONFIG names it: rsh ports run programs", "p4 help environment: P4CONFIG, P4PORT", ".p4config .p4enviro"},
		{whyVCS, "CVS", fromHome, "cvs(1), FILES", ".cvsrc"},

		{whyShell, "bash", fromHome, "bash(1), INVOCATION", ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .bash_completion .bashrc.d .config/bash_completion .profile"},
		{whyShell, "zsh", fromHome, "zsh(1), STARTUP/SHUTDOWN FILES; zshcompsys(1)", ".zshrc .zshenv .zprofile .zlogin .zlogout .zcompdump .zshrc.d .zsh .oh-my-zsh .p10k.zsh .config/zsh"},
		{whyShell, "ksh, mksh, sh of BSD", fromHome, "ksh(1), mksh(1), sh(1)", ".kshrc .mkshrc .shrc .shinit"},
		{whyShell, "csh, tcsh", fromHome, "tcsh(1), Startup and shutdown", ".cshrc .tcshrc .login .logout"},
		{whyShell, "fish", fromHome, "fish documentation, Configuration", ".config/fish .local/share/fish"},
		{whyShell, "nushell, PowerShell, elvish, xonsh, yash", fromHome, "their documents, configuration", ".config/nushell .config/powershell .config/elvish .elvish .config/xonsh .xonshrc .yashrc .yash_profile"},
		{whyShell, "readline, libedit", fromHome, "readline(3), INITIALIZATION FILE; editrc(5)", ".inputrc .editrc"},
		{whyShell, "direnv", "entering the directory; a changed file is asked about", "direnv(1)", ".envrc .direnvrc .config/direnv .local/share/direnv"},
		{whyShell, "mise", "entering the directory: a path that was trusted once stays trusted", "mise documentation: trust, hooks", "mise.toml .mise.toml mise.local.toml .mise.local.toml .mise .config/mise .config/mise.toml .local/state/mise"},
		{whyShell, "RVM, autoenv", "entering the directory", "rvm documentation, .rvmrc; zsh-autoenv README", ".rvmrc .autoenv .autoenv.zsh .autoenv_leave.zsh"},
		{whyShell, "rbenv-vars", "each Ruby command", "rbenv-vars README", ".rbenv-vars"},
		{whyShell, "starship", "each prompt", "starship documentation, custom commands", ".config/starship.toml"},
		{whyShell, "tmux, screen, byobu, zellij", fromHome, "tmux(1), screen(1): files", ".tmux.conf .tmux .config/tmux .screenrc .byobu .config/zellij"},

		{whyREPL, "gdb", atStart, "gdb documentation, Startup: init file in the current directory", ".gdbinit .gdbearlyinit .config/gdb"},
		{whyREPL, "lldb", atStart, "lldb(1), CONFIGURATION FILES", ".lldbinit"},
		{whyREPL, "pdb of Python", "debugging in the workspace", "Python library, pdb: .pdbrc", ".pdbrc .pdbrc.py"},
		{whyREPL, "ghci", atStart, "GHC user's guide, .ghci files", ".ghci .ghc"},
		{whyREPL, "irb, pry", atStart, "irb documentation, configuration; pry wiki, pryrc", ".irbrc .pryrc"},
		{whyREPL, "R", atStart, "R: ?Startup", ".Rprofile .Renviron .RData .R"},
		{whyREPL, "ocaml", atStart, "ocaml(1), .ocamlinit", ".ocamlinit"},
		{whyREPL, "iex, erl", atStart, "IEx documentation, .iex.exs; erl(1), .erlang", ".iex.exs .erlang .erlang.cookie"},
		{whyREPL, "octave, Scilab, gnuplot", atStart, "Octave manual, Startup files; scilab(1); gnuplot: initialization", ".octaverc .scilab .gnuplot"},
		{whyREPL, "perl -d", "debugging in the workspace", "perldebug(1): .perldb", ".perldb"},
		{whyREPL, "PsySH", atStart, "PsySH wiki, configuration", ".psysh.php"},
		{whyREPL, "valgrind", atStart, "valgrind(1), --: .valgrindrc", ".valgrindrc"},
		{whyREPL, "psql, sqlite3, mysql, duckdb, mongosh, redis-cli", fromHome, "psql(1), sqlite3(1), mysql: option files, their documents", ".psqlrc .sqliterc .my.cnf .duckdbrc .mongorc.js .mongoshrc.js .redisclirc"},
		{whyREPL, "python, ipython, jupyter", fromHome, "Python: PYTHONSTARTUP; ipython and jupyter documents, configuration", ".pythonrc .pythonrc.py .pythonstartup .pystartup .ipython .jupyter"},
		{whyREPL, "tclsh, sbcl, guile, julia, radare2", fromHome, "tclsh(1), sbcl(1), guile(1), julia(1), radare2(1)", ".tclshrc .wishrc .sbclrc .clisprc .guile .julia/config .radare2rc"},
		{whyREPL, "bpython, ptpython, VisiData, Devel::REPL, Reply", fromHome, "bpython, ptpython and VisiData documents, configuration; re.pl(1), reply(1)", ".bpython .config/bpython .ptpython .config/ptpython .visidata .visidatarc .config/visidata .re.pl .replyrc"},

		{whyTool, "ripgrep, ack, bat, less", fromHome, "rg(1), CONFIGURATION FILES: --pre; ack(1); bat(1): --pager; lesskey(1): LESSOPEN", ".ripgreprc .ackrc .config/bat .less .lesskey .config/lesskey"},
		{whyTool, "curl, wget, lftp", fromHome, "curl(1), -K; wget: startup file, use_askpass; lftp(1)", ".curlrc .wgetrc .lftprc .lftp"},
		{whyTool, "pip, uv, poetry, conda", fromHome, "pip documentation, configuration; uv, poetry, conda documents", ".pip .config/pip .config/uv .config/pypoetry .condarc .mambarc .pydistutils.cfg"},
		{whyTool, "gem, composer, terraform, ansible, vagrant", fromHome, "gem(1), composer, terraform, ansible, vagrant documents: configuration", ".gemrc .composer .terraformrc .terraform.d .tofurc .ansible.cfg .vagrant.d"},
		{whyTool, "Maven, Gradle, sbt, Leiningen, Clojure", fromHome, "Maven settings and core extensions; Gradle initialization scripts; sbt global settings; lein profiles; Clojure deps", ".m2/settings.xml .m2/settings-security.xml .m2/extensions.xml .gradle/init.gradle .gradle/init.d .gradle/gradle.properties .sbt .lein .clojure"},
		{whyTool, "node, bun", fromHome, "Node.js modules: loading from the global folders; bun: bunfig", ".node_modules .node_libraries .bunfig.toml"},
		{whyTool, "mail programs, MIME", fromHome, "mailcap(5), muttrc(5), mailx(1), procmailrc(5), aliases of a home", ".mailcap .muttrc .mutt .neomuttrc .config/mutt .config/neomutt .mailrc .procmailrc .forward .mailfilter"},
		{whyTool, "programs that get and send mail", fromHome, "mbsync(1), PassCmd and Tunnel; offlineimap(1), pythonfile; msmtp(1) and mpop(1), passwordeval; fetchmail(1), preconnect; getmail(1); notmuch-hooks(5)", ".mbsyncrc .config/isyncrc .offlineimaprc .config/offlineimap .msmtprc .config/msmtp .mpoprc .config/mpop .fetchmailrc .getmail .config/getmail .notmuch-config .config/notmuch"},
		{whyTool, "irssi, WeeChat, HexChat", fromHome, "irssi startup file, scripts; WeeChat user's guide, autoload; HexChat add-ons", ".irssi .weechat .config/weechat .local/share/weechat .config/hexchat"},
		{whyTool, "Arcanist", "each arc command in the workspace", "Arcanist user guide, configuring a new project: load", ".arcconfig .arcrc .git/arc"},
		{whyTool, "nano, tig, lazygit, top, file managers", fromHome, "nanorc(5), tigrc(5), lazygit documents, top(1): inspect, their documents", ".nanorc .config/nano .tigrc .config/tig .config/lazygit .toprc .config/procps .config/lf .config/ranger .config/yazi .config/nnn .config/mc .config/vifm"},

		{whyEditor, "VS Code, VSCodium, Cursor, code-server, Visual Studio, Theia", onOpen + ": tasks, settings; trust is asked for once", "VS Code documentation, Tasks: runOn, Workspace Trust; Visual Studio: Open Folder", ".vscode .vs .theia"},
		{whyEditor, "JetBrains IDEs", onOpen + ": run configurations, startup tasks; trust is asked for once", "IntelliJ documentation, Project security", ".idea .run .fleet"},
		{whyEditor, "Zed, Helix, Lapce, Nova, Kakoune", onOpen + ": language servers, tasks", "Zed, Helix, Lapce documents, project configuration; Nova, Kakoune: extensions", ".zed .helix .lapce .nova .kakrc .config/zed .config/helix .config/kak .config/lapce-stable"},
		{whyEditor, "vim, neovim", "its start in the workspace with the option exrc, or with a plug-in for local settings", "vim: :help exrc; neovim: :help exrc, vim.secure", ".vimrc .gvimrc .nvimrc .nvim.lua .exrc .vim .lvimrc .local.vimrc .lazy.lua .config/nvim .config/vim .local/share/nvim .ycm_extra_conf.py .vimspector.json"},
		{whyEditor, "emacs", "opening any file below", "Emacs manual, Per-directory local variables; Init file; Saving sessions", ".dir-locals.el .dir-locals-2.el .emacs .emacs.el .emacs.d .emacs.desktop .spacemacs .spacemacs.d .doom.d .config/emacs .config/doom .gnus .gnus.el"},
		{whyEditor, "Kate, KDevelop, Qt Creator, Eclipse, CodeLite, Atom", onOpen, "Kate: project plug-in; KDevelop, Qt Creator: sessions; Eclipse: external tools builders", ".kateproject .kateproject.build .kdev4 .qtcreator .externalToolBuilders .codelite .atom"},
		{whyEditor, "editors with development containers", onOpen, "containers.dev: devcontainer.json, initializeCommand runs on the host", ".devcontainer .devcontainer.json"},
		{whyEditor, "Ruby LSP of editors", onOpen, "ruby-lsp documentation, composed bundle", ".ruby-lsp"},
		{whyEditor, "editors", fromHome, "their documents, user settings", ".config/Code .config/VSCodium .config/Cursor .config/sublime-text .config/JetBrains .vscode-server"},

		{whyAgent, "Claude Code", "its start in the workspace, and each tool call: hooks, MCP servers, permissions", "Claude Code documentation, Settings; Hooks; MCP", ".claude .claude.json .mcp.json"},
		{whyAgent, "Codex", atStart, "Codex documentation, config; skills", ".codex .agents"},
		{whyAgent, "Cursor, Windsurf, Cline, Roo, Kilo, Trae, Augment, Junie", "its start in the workspace: MCP servers, hooks, modes", "their documents, project configuration", ".cursor .windsurf .codeium .cline .clinerules/hooks .roo .roomodes .kilocode .kilocodemodes .trae .augment .junie"},
		{whyAgent, "Gemini CLI, Qwen Code, Copilot CLI, Amazon Q, Kiro", "its start in the workspace: MCP servers, hooks, permissions", "their documents: settings.json, hooks, MCP", ".gemini .qwen .copilot .github/hooks .github/mcp.json .github/lsp.json .amazonq .kiro"},
		{whyAgent, "opencode, Crush, Amp, goose, Factory, Continue, aider", "its start in the workspace: MCP and language servers, plug-ins, formatters, commands", "their documents, project configuration", ".opencode opencode.json opencode.jsonc .crush .crush.json crush.json .amp .goose .factory .continue .continuerc.json .aider.conf.yml .aider.model.settings.yml"},
		{whyAgent, "OpenHands, gptme, pi, Rovo Dev, Vibe, Warp, Tabnine, Grok", "its start in the workspace", "their documents: setup scripts, context commands, extensions", ".openhands gptme.toml .pi .rovodev .vibe .warp .tabnine .grok"},
		{whyAgent, "agents", fromHome, "their documents, user configuration", ".config/opencode .config/crush .config/amp .config/goose .config/claude .config/github-copilot .config/aichat"},

		{whyCredential, "ssh, GnuPG, X.509 and other keys", fromHome, "ssh_config(5), authorized_keys; gpg(1); kerberos(1)", ".ssh .gnupg .password-store .rhosts .shosts .k5login .netrc _netrc .authinfo .authinfo.gpg .git-credentials .vault-token"},
		{whyCredential, "clouds", fromHome, "their documents, configuration: credential_process, exec plug-ins", ".aws .azure .config/gcloud .boto .s3cfg .config/rclone .oci .aliyun .databrickscfg .fly .heroku .pulumi .config/doctl .config/hcloud"},
		{whyCredential, "containers and clusters", fromHome, "kubeconfig: exec; docker: credential helpers, plug-ins; helm plug-ins", ".kube .docker/config.json .docker/cli-plugins .docker/contexts .dockercfg .config/containers .config/helm .local/share/helm .minikube .vagrant"},
		{whyCredential, "registries of packages, forges", fromHome, "their documents, configuration", ".pypirc .cargo/credentials .cargo/credentials.toml .gem/credentials .config/gh .config/hub .config/glab-cli .config/configstore .cvspass .p4tickets .p4trust"},
		{whyCredential, "databases", fromHome, "psql: password file, service file; mysql_config_editor(1)", ".pgpass .pg_service.conf .mylogin.cnf"},
		{whyCredential, "Paddock", "each call of a server", "paddock login", ".config/paddock"},

		{whyDesktop, "desktop sessions", "login", "XDG autostart, D-Bus services, systemd user units, environment.d", ".config/autostart .config/autostart-scripts .config/plasma-workspace .config/systemd .config/environment.d .local/share/applications .local/share/systemd .local/share/dbus-1 .local/share/kservices5 .local/share/nautilus .local/share/nemo .local/share/thumbnailers .local/share/gnome-shell .local/share/plasma .local/share/bash-completion"}, //nolint:misspell // the name of a directory
		{whyDesktop, "X sessions and window managers", "login", "startx(1), Xsession(5), their documents", ".xinitrc .xprofile .xsession .xsessionrc .xserverrc .Xresources .Xdefaults .xbindkeysrc .dmrc .gtkrc-2.0 .fvwm .i3 .config/i3 .config/sway .config/hypr .config/bspwm .config/sxhkd .config/awesome .config/openbox .config/qtile .config/waybar .config/polybar .config/labwc .config/river .config/niri"},
		{whyDesktop, "terminals", fromHome, "their documents, configuration", ".config/alacritty .config/kitty .config/wezterm .wezterm.lua .config/ghostty .config/foot"},
		{whyDesktop, "browsers, mail, media players", fromHome, "their profiles, user.js; mpv(1): scripts", ".mozilla .thunderbird .config/google-chrome .config/chromium .config/BraveSoftware .config/microsoft-edge .config/mpv"},
		{whyDesktop, "PAM, macOS", "login", "pam_env(8); launchd.plist(5)", ".pam_environment Library/LaunchAgents"},
		{whyDesktop, "KDE", "showing the directory", "KDE: .directory files", ".directory"},

		{whyPrograms, "shells", "each command by name", "PATH of installers", ".local/bin .cargo/bin .cargo/env .bun/bin .deno/bin .dotnet/tools .local/share/pnpm .local/share/mise"},
		{whyPrograms, "version managers", "each shell, each command by name", "nvm, pyenv, rbenv, asdf, Volta, SDKMAN documents", ".nvm .pyenv .rbenv .asdf .volta .sdkman"},
		{whyPrograms, "Python", "each start of the interpreter: .pth files", "Python library, site", ".local/lib"},

		{whyPaddock, "Paddock, sandbox-runtime", "each run in the workspace", "docs/reference/policy.md", ".paddock .paddock.yaml .paddock.yml .srt-settings.json"},
	}
}

// expand makes names of rows.
func expand(rows []row, root bool) []Name {
	var names []Name
	for _, r := range rows {
		for text := range strings.FieldsSeq(r.names) {
			names = append(names, Name{Text: text, Reason: r.reason, Program: r.program, When: r.when, Source: r.source, Root: root})
		}
	}
	return names
}
