# only: jail
"""What is not offered is refused in words, by the exceptions that clients know."""
import os

from e2b import AsyncSandbox, AsyncSecret, AsyncVolume, AuthenticationException, NotFoundException, Sandbox, SandboxException, Secret, Volume
from promise import done, promise, raises

template = os.environ["TEMPLATE"]
sandbox = Sandbox.create(template)


@promise("volumes")
def _():
    assert "volumes are not offered by this server" in str(raises(Exception, lambda: Volume.create("data")))
    assert Volume.list() == [] and Volume.destroy("data") is False
    raises(NotFoundException, lambda: Volume.connect("data"))
    assert "volumes are not offered" in str(raises(SandboxException, lambda: Sandbox.create(template, volume_mounts={"/data": "data"})))


@promise("secrets and identities")
def _():
    assert "secrets are not offered over this API" in str(raises(Exception, lambda: Secret.create("name", "value")))
    assert Secret.list().next_items() == [] and Secret.exists("name") is False and Secret.destroy("name") is False
    error = raises(SandboxException, lambda: Sandbox.create(template, iam={"tokens": {"a": {"audience": "x", "token_type": "JWT-SVID"}}}))
    assert "workload identities are not offered" in str(error), error


@promise("what the tier cannot keep")
def _():
    assert "the tier jail cannot take this snapshot" in str(raises(SandboxException, sandbox.create_snapshot))
    assert "the tier jail cannot take this snapshot" in str(raises(SandboxException, sandbox.fork))
    assert sandbox.is_running()


@promise("another user")
def _():
    for call in (lambda: sandbox.files.write("/tmp/x", "x", user="root"), lambda: sandbox.files.list("/tmp", user="root"), lambda: sandbox.commands.run("id", user="root")):
        assert "invalid username: 'root'" in str(raises(AuthenticationException, call))


@promise("the asynchronous client is told the same")
async def _():
    assert await AsyncVolume.list() == [] and await AsyncVolume.destroy("data") is False
    assert await AsyncSecret.list().next_items() == [] and await AsyncSecret.exists("name") is False
    other = await AsyncSandbox.connect(sandbox.sandbox_id)
    try:
        await other.create_snapshot()
        raise AssertionError("a snapshot on jail")
    except SandboxException as error:
        assert "the tier jail cannot take this snapshot" in str(error), error


sandbox.kill()
done()
