"""What the scripts share: the client, a sandbox that is removed, and promises."""

import contextlib
import os

from daytona import CreateSandboxFromSnapshotParams, Daytona, DaytonaConfig

client = Daytona(DaytonaConfig(api_key=os.environ["DAYTONA_API_KEY"], api_url=os.environ["DAYTONA_API_URL"], target=os.environ["TIER"]))


def kept(what, ok=True):
    print(("kept: " if ok else "BROKEN: ") + what, flush=True)


def same(what, got, want):
    if got != want:
        print("BROKEN: %s: %r, not %r" % (what, got, want), flush=True)
    else:
        kept(what)


@contextlib.contextmanager
def sandbox(**params):
    box = client.create(CreateSandboxFromSnapshotParams(**params))
    try:
        yield box
    finally:
        box.delete()


def raises(what, kind, f):
    try:
        f()
    except Exception as err:  # noqa: BLE001, any other is told
        if type(err) is not kind and not isinstance(err, kind):
            print("BROKEN: %s: %s %s" % (what, type(err).__name__, err), flush=True)
        else:
            kept(what)
        return
    print("BROKEN: %s: nothing was raised" % what, flush=True)
