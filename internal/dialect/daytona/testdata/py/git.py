from common import kept, raises, same, sandbox

from daytona import SessionExecuteRequest
from daytona.common import errors as e

with sandbox() as box:
    g, p, f = box.git, box.process, box.fs
    p.exec("git init -q --bare -b main up.git && git clone -q up.git seed 2>/dev/null && cd seed && git checkout -q -b main && echo one > a && git add a && git -c user.name=a -c user.email=a@b commit -q -m first && git push -q origin main")
    home = box.get_work_dir()
    url = "file://" + home + "/up.git"
    g.clone(url=url, path="work")
    s = g.status("work")
    same("a clone", (s.current_branch, s.file_status, s.ahead, s.behind), ("main", [], 0, 0))
    f.upload_file(b"two\n", "work/b c")
    f.upload_file(b"changed\n", "work/a")
    s = {x.name: (x.staging.value, x.worktree.value) for x in g.status("work").file_status}
    same("its status", s, {"a": ("Unmodified", "Modified"), "b c": ("Untracked", "Untracked")})
    g.add("work", ["."])
    done = g.commit("work", "second\n\nwith a body", "Ann", "ann@example.com")
    kept("a commit has a hash", len(done.sha) == 40)
    same("one ahead", g.status("work").ahead, 1)
    g.push("work")
    same("pushed", (g.status("work").ahead, p.exec("git -C up.git log --format=%an -1 main").result), (0, "Ann\n"))
    g.create_branch("work", "feature")
    raises("a branch is made once", e.DaytonaGitBranchExistsError, lambda: g.create_branch("work", "feature"))
    g.checkout_branch("work", "feature")
    b = g.branches("work")
    same("branches", (sorted(b.branches), g.status("work").current_branch), (["feature", "main"], "feature"))
    g.checkout_branch("work", "main")
    g.delete_branch("work", "feature")
    same("a branch is removed", g.branches("work").branches, ["main"])
    raises("an unknown branch", e.DaytonaGitBranchNotFoundError, lambda: g.checkout_branch("work", "none"))
    raises("no repository", e.DaytonaGitRepoNotFoundError, lambda: g.status("/tmp"))
    raises("nor a remote one", e.DaytonaGitRepoNotFoundError, lambda: g.clone(url="file:///none.git", path="none"))
    p.exec("cd seed && git pull -q && echo three > c && git add c && git -c user.name=a -c user.email=a@b commit -q -m third && git push -q origin main")
    f.upload_file(b"mine\n", "work/d")
    g.add("work", ["d"])
    g.commit("work", "mine", "Ann", "ann@example.com")
    raises("a push that is behind", e.DaytonaGitPushRejectedError, lambda: g.push("work"))
    g.configure_user("Bob", "bob@example.com")
    same("the configuration", g.get_config("user.name"), "Bob")
    same("a key that is not set", g.get_config("user.none"), None)
    g.pull("work")
    g.push("work")
    kept("pulled and pushed", "third" in p.exec("git -C work log --format=%s").result and g.status("work").ahead == 0)
    raises("a host that is not there", e.DaytonaGitTransportFailedError, lambda: g.clone(url="https://nowhere.invalid/x.git", path="x"))
    g.clone(url=url, path="old", commit_id=p.exec("git -C seed rev-list --max-parents=0 HEAD").result.strip())
    kept("a commit is checked out", g.status("old").detached)
    raises("a name is no option", e.DaytonaBadRequestError, lambda: g.create_branch("work", "--all"))

# A login goes to the host of the remote alone, and to none that it leads to.
HOSTS = """
import http.server, threading
class Asks(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        open("/tmp/seen", "a").write("%s %s\\n" % (self.server.server_port, "login" if self.headers.get("Authorization") else "none"))
        self.send_response(401)
        self.send_header("WWW-Authenticate", "Basic realm=x")
        self.end_headers()
    def log_message(self, *_): pass
class Leads(Asks):
    def do_GET(self):
        self.send_response(302)
        self.send_header("Location", "http://127.0.0.1:8002" + self.path)
        self.end_headers()
for port, kind in (8001, Leads), (8002, Asks):
    threading.Thread(target=http.server.HTTPServer(("127.0.0.1", port), kind).serve_forever).start()
open("/tmp/ready", "w")
"""
with sandbox() as box:
    box.fs.upload_file(HOSTS.encode(), "/tmp/hosts.py")
    box.process.create_session("hosts")
    box.process.execute_session_command("hosts", SessionExecuteRequest(command="python3 /tmp/hosts.py", run_async=True))
    while box.process.exec("test -e /tmp/ready").exit_code:
        pass

    def clone(port):
        box.process.exec("rm -f /tmp/seen")
        raises("port %d refuses it" % port, e.DaytonaGitAuthFailedError, lambda: box.git.clone(url="http://127.0.0.1:%d/x.git" % port, path="x%d" % port, username="me", password="mine"))
        return sorted(set(box.process.exec("cat /tmp/seen").result.split("\n")) - {""})

    same("the host of the remote is asked with the login", clone(8002), ["8002 login", "8002 none"])
    same("another one that it leads to is not", clone(8001), ["8002 none"])
    box.git.init("pulls")
    box.process.exec("git -C pulls remote add origin http://127.0.0.1:8001/x.git; rm -f /tmp/seen")
    raises("nor with a pull", e.DaytonaGitAuthFailedError, lambda: box.git.pull("pulls", username="me", password="mine", remote="origin", branch="main"))
    same("there", sorted(set(box.process.exec("cat /tmp/seen").result.split("\n")) - {""}), ["8002 none"])
