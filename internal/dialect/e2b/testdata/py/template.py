# only: gvisor
"""Templates, built by the synchronous client and by the asynchronous one."""
import os
import pathlib
import tempfile

from e2b import AsyncSandbox, AsyncTemplate, BuildException, CopyItem, Sandbox, Template, TemplateBuildStatus, default_build_logger, wait_for_file, wait_for_port
from promise import done, promise, raises, until

template = os.environ["TEMPLATE"]
base = pathlib.Path(tempfile.mkdtemp())
(base / "src" / "deep").mkdir(parents=True)
(base / "src" / "a.txt").write_text("a\n")
(base / "src" / "deep" / "b.txt").write_text("b\n")
(base / "src" / "left.log").write_text("left out\n")
(base / ".dockerignore").write_text("**/*.log\n")

DOCKERFILE = """FROM e2bdev/base
WORKDIR /app
COPY src/a.txt a.txt
COPY --chown=user:user src/deep deep
ENV A=1
ENV B=$A.2
RUN echo "$B" > said; \\
    pwd >> said
USER user
RUN id -un >> /app/deep/mine
CMD python3 -m http.server 8400
"""


@promise("a Dockerfile is built, with what it starts")
def _():
    logs = []
    (base / "Dockerfile").write_text(DOCKERFILE)
    built = Template(file_context_path=base).from_dockerfile(str(base / "Dockerfile")).set_ready_cmd(wait_for_port(8400))
    info = Template.build(built, "rig-py-dockerfile", tags=["v1"], cpu_count=1, memory_mb=1024, on_build_logs=logs.append)
    assert info.name == "rig-py-dockerfile" and logs, (info, logs)
    with Sandbox.create("rig-py-dockerfile:v1") as sandbox:
        result = sandbox.commands.run("cd /app && cat a.txt deep/b.txt said deep/mine && curl -s -o /dev/null -w '%{http_code}' http://127.0.0.1:8400/")
        assert result.stdout == "a\nb\n1.2\n/app\nuser\n200", result.stdout
        assert sandbox.get_info().cpu_count == 1


@promise("each step of the builder does what it says")
def _():
    built = (
        Template(file_context_path=base)
        .from_template(template)
        .copy("src", "one", user="user", mode=0o755)
        .copy_items([CopyItem(src="src/a.txt", dest="two/"), CopyItem(src="src/*.txt", dest="three/")])
        .make_dir(["m1", "m2/deep"], mode=0o700)
        .make_symlink("one/a.txt", "link")
        .rename("m1", "m3")
        .remove("m2", recursive=True)
        .set_envs({"K": "v", "L": "$K!"})
        .set_workdir("/data/set")
        .run_cmd(["echo $L > env", "id -un >> env"])
        .run_cmd("id -un > /tmp/root", user="root")
        .skip_cache()
        .set_start_cmd("touch /tmp/started && exec sleep 1000", wait_for_file("/tmp/started"))
    )
    Template.build(built, "rig-py-steps", on_build_logs=default_build_logger())
    with Sandbox.create("rig-py-steps") as sandbox:
        result = sandbox.commands.run("cat one/a.txt one/deep/b.txt two/a.txt three/a.txt link /data/set/env /tmp/root; ls -d m1 m2 m3 one/left.log 2>/dev/null; pgrep -c sleep", cwd="/home/user")
        assert result.stdout == "a\nb\na\na\na\nv!\nuser\nroot\nm3\n1\n", result.stdout
    assert Template.exists("rig-py-steps") and Template.alias_exists("rig-py-steps") and not Template.exists("rig-nothing")


@promise("a build in the background is asked how it is, and tags move")
def _():
    build = Template.build_in_background(Template().from_template(template).run_cmd("echo here"), "rig-py-back:one")
    assert Template.get_build_status(build).status in (TemplateBuildStatus.BUILDING, TemplateBuildStatus.READY)
    until(lambda: Template.get_build_status(build).status != TemplateBuildStatus.BUILDING)
    now = Template.get_build_status(build)
    assert now.status == TemplateBuildStatus.READY and any("here" in entry.message for entry in now.log_entries), now
    assert sorted(Template.assign_tags("rig-py-back:one", tags=["two", "three"]).tags) == ["three", "two"]
    assert sorted(tag.tag for tag in Template.get_tags(build.template_id)) == ["one", "three", "two"]
    Template.remove_tags("rig-py-back", "two")
    assert sorted(tag.tag for tag in Template.get_tags(build.template_id)) == ["one", "three"]


@promise("a step that fails is told, with its output and where it stands")
def _():
    logs = []
    built = Template().from_template(template).run_cmd("echo so far").run_cmd("echo why >&2; exit 3")
    error = raises(BuildException, lambda: Template.build(built, "rig-py-fails", on_build_logs=logs.append))
    assert "exit status 3" in str(error), error
    assert any("why" in entry.message for entry in logs), logs
    for wrong, words in ((Template().from_aws_registry("a.example.com/b", "k", "s", "r"), "type aws"), (Template().from_gcp_registry("b.example.com/b", {"a": "b"}), "type gcp")):
        error = raises(Exception, lambda: Template.build(wrong, "rig-py-fails"))
        assert words in str(error), error


@promise("more builds than run at once wait for their turn")
def _():
    begun = [Template.build_in_background(Template().from_template(template).run_cmd("sleep 3"), f"rig-py-many-{i}") for i in range(4)]
    states = [Template.get_build_status(build).status for build in begun]
    assert TemplateBuildStatus.WAITING in states and TemplateBuildStatus.ERROR not in states, states
    until(lambda: all(Template.get_build_status(build).status == TemplateBuildStatus.READY for build in begun))


@promise("the asynchronous client builds too")
async def _():
    built = AsyncTemplate().from_template(template).set_workdir("/app").run_cmd("echo built > it")
    build = await AsyncTemplate.build(built, "rig-py-async", skip_cache=True)
    assert await AsyncTemplate.exists("rig-py-async") and (await AsyncTemplate.get_build_status(build)).status == TemplateBuildStatus.READY
    await AsyncTemplate.assign_tags("rig-py-async:default", "again")
    sandbox = await AsyncSandbox.create("rig-py-async:again")
    assert (await sandbox.commands.run("cat it", cwd="/app")).stdout == "built\n"
    await sandbox.kill()


done()
