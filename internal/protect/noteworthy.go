package protect

// noteworthyRows lists what people edit in the course of work, and what the host obeys later:
// told at the end, not refused.
func noteworthyRows() []row {
	return []row{
		{reason: "a package manager on the host runs commands from it, or takes packages from where it says", names: "package.json .npmrc .yarnrc .yarnrc.yml .yarn/releases .yarn/plugins .pnpmfile.cjs setup.py pyproject.toml pip.conf Gemfile composer.json .pnp.cjs bunfig.toml deno.json .bowerrc poetry.toml uv.toml setup.cfg Pipfile requirements.txt nuget.config NuGet.Config .bundle pnpm-workspace.yaml"},
		{reason: "building or testing on the host runs commands from it", names: "Makefile GNUmakefile justfile Taskfile.yml Rakefile CMakeLists.txt build.rs .cargo/config.toml .cargo/config rust-toolchain.toml build.gradle build.gradle.kts gradlew gradle/wrapper mvnw .mvn conftest.py tox.ini noxfile.py .bazelrc .bazelversion tools/bazel MODULE.bazel .buckconfig pants.toml meson.build SConstruct wscript configure build.sbt project/plugins.sbt project.clj deps.edn mix.exs rebar.config Setup.hs build.zig Package.swift Directory.Build.props Directory.Build.targets pom.xml build.xml settings.gradle settings.gradle.kts gradle.properties magefile.go Tiltfile Procfile turbo.json nx.json gulpfile.js Gruntfile.js .proverc .rspec Guardfile ansible.cfg"},
		{reason: "a commit or a checkout on the host runs commands from it", names: ".husky .githooks .pre-commit-config.yaml lefthook.yml .gitattributes CVS/Root .lfsconfig .hgsub .huskyrc .lintstagedrc .overcommit.yml pijul.toml"},
		{reason: "git on the host goes on with the commands in it", names: ".git/rebase-merge .git/rebase-apply .git/sequencer"},
		{reason: "git on the host fetches from and pushes to where it says", names: ".git/config .git/config.worktree .gitmodules"},
		{reason: "a build server runs commands from it", names: ".github .gitlab-ci.yml .circleci .travis.yml Jenkinsfile azure-pipelines.yml .buildkite .gitpod.yml .woodpecker.yml .drone.yml bitbucket-pipelines.yml appveyor.yml"},
		{reason: "building or starting containers on the host runs commands from it", names: "Dockerfile Containerfile docker-compose.yml compose.yaml Vagrantfile compose.yml docker-compose.yaml .terraform .vagrantplugins skaffold.yaml"},
		{reason: "tools on the host set variables or versions from it", names: ".env .direnv .tool-versions flake.nix shell.nix .python-version .ruby-version .node-version .nvmrc .java-version .sdkmanrc devbox.json devenv.nix"},
		{reason: "agents on the host take instructions from it", names: "AGENTS.md CLAUDE.md GEMINI.md .cursorrules .clinerules .windsurfrules AGENTS.override.md AGENT.md CLAUDE.local.md QWEN.md WARP.md CRUSH.md .goosehints .rules .roorules .augment-guidelines .github/copilot-instructions.md mcp.json"},
		{reason: "interpreters started on the host load it by itself", names: "sitecustomize.py usercustomize.py jupyter_config.py jupyter_lab_config.py jupyter_notebook_config.py jupyter_server_config.py .htaccess .user.ini startup.m login.sql wp-cli.yml"},
		{reason: "plug-ins of an editor on the host load code from it when a file is opened", names: ".pylintrc pylintrc .flake8 mypy.ini eslint.config.js eslint.config.mjs eslint.config.cjs eslint.config.ts .eslintrc.js .eslintrc.cjs .prettierrc.js prettier.config.js .stylelintrc.js .rubocop.yml .solargraph.yml phpstan.neon .php-cs-fixer.php .luarc.json babel.config.js .babelrc.js .project nbproject"},
		{reason: "programs are run from it on the host", names: "node_modules/.bin venv/bin .venv/bin env/bin"},
	}
}
