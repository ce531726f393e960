# only: image
"""Templates that begin with an image of a registry, which IMAGE and PRIVATE name."""
import os
import pathlib
import tempfile

from e2b import BuildException, Sandbox, Template
from promise import done, promise, raises

image, private = os.environ["IMAGE"], os.environ["PRIVATE"]
base = pathlib.Path(tempfile.mkdtemp())
(base / "a.txt").write_text("a\n")


@promise("a Dockerfile begins with an image")
def _():
    text = f"""FROM {image}
WORKDIR /app
COPY a.txt b.txt
ENV MORE="$FROM too"
RUN echo "$MORE" > made
USER user
RUN id -un > /app/who
"""
    Template.build(Template(file_context_path=base).from_dockerfile(text), "rig-py-image")
    with Sandbox.create("rig-py-image") as sandbox:
        result = sandbox.commands.run("cd /app; cat /marker b.txt made who; echo $FROM")
        assert result.stdout == "of the image\na\nthe image too\nuser\nthe image\n", result.stdout


@promise("credentials open an image for the build that has them, and are in no log")
def _():
    Template.build(Template().from_image(private, username="u", password="right").run_cmd("cat /marker"), "rig-py-private")
    logs = []
    wrong = Template().from_image(private, username="u", password="wrong-word")
    error = raises(BuildException, lambda: Template.build(wrong, "rig-py-wrong", on_build_logs=logs.append))
    assert "does not take these credentials" in str(error), error
    assert not any("wrong-word" in entry.message for entry in logs)
    assert "wants credentials" in str(raises(BuildException, lambda: Template.build(Template().from_image(private), "rig-py-wrong")))


done()
