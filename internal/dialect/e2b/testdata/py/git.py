"""Methods of git, which E2B's clients turn into commands."""
import os

from e2b import AsyncSandbox, CommandExitException, GitUpstreamException, Sandbox
from promise import done, promise, raises

sandbox = Sandbox.create(os.environ["TEMPLATE"])
git, files = sandbox.git, sandbox.files
repo = "/home/user/repo"


@promise("a repository is made, filled, branched and told of")
def _():
    git.init(repo, initial_branch="main")
    git.configure_user("Ann", "ann@example.com")
    assert git.get_config("user.name") == "Ann"
    files.write(f"{repo}/README.md", "hello\n")
    status = git.status(repo)
    assert (status.current_branch, status.has_untracked) == ("main", True), status
    git.add(repo)
    git.commit(repo, "Begin")
    assert git.status(repo).is_clean
    git.create_branch(repo, "side")
    branches = git.branches(repo)
    assert (sorted(branches.branches), branches.current_branch) == (["main", "side"], "side"), branches
    git.checkout_branch(repo, "main")
    git.delete_branch(repo, "side")
    raises(GitUpstreamException, lambda: git.pull(repo))


@promise("what was changed is reset and restored")
def _():
    files.write(f"{repo}/README.md", "changed\n")
    git.add(repo, files=["README.md"])
    git.reset(repo, paths=["README.md"])
    assert not git.status(repo).has_staged
    git.restore(repo, ["README.md"])
    assert files.read(f"{repo}/README.md") == "hello\n"


@promise("a repository is pushed to, cloned and pulled")
def _():
    sandbox.commands.run("git init --quiet --bare --initial-branch=main far.git")
    git.remote_add(repo, "origin", "/home/user/far.git")
    assert git.remote_get(repo, "origin") == "/home/user/far.git"
    git.push(repo, remote="origin", branch="main", set_upstream=True)
    git.clone("/home/user/far.git", path="/home/user/copy")
    assert files.read("copy/README.md") == "hello\n"
    git.pull(repo)


@promise("what git is set to is asked for, of all repositories or of one, and a password is kept")
def _():
    git.set_config("core.pager", "cat")
    git.set_config("user.email", "one@example.com", scope="local", path=repo)
    assert git.get_config("core.pager") == "cat"
    assert (git.get_config("user.email", scope="local", path=repo), git.get_config("user.email")) == ("one@example.com", "ann@example.com")
    git.dangerously_authenticate("ann", "secret", host="git.example.com")
    assert "https://ann:secret@git.example.com" in files.read(".git-credentials")
    raises(CommandExitException, lambda: git.clone("/home/user/nowhere.git", path="/home/user/none"))


@promise("the asynchronous client does the same")
async def _():
    other = await AsyncSandbox.connect(sandbox.sandbox_id)
    await other.git.init("/home/user/other", initial_branch="main")
    assert (await other.git.status("/home/user/other")).current_branch == "main"


sandbox.kill()
done()
