"""promise runs one case. All cases of a script run, and done ends the script with 1 if one failed."""
import asyncio
import inspect
import os
import sys
import time
import traceback

broken = []


def promise(text):
    def run(case):
        try:
            if inspect.iscoroutinefunction(case):
                asyncio.run(case())
            else:
                case()
            print(f"kept: {text}", flush=True)
        except Exception:
            broken.append(text)
            print(f"BROKEN: {text}: {traceback.format_exc()}", flush=True)
        return case

    return run


def raises(kind, call):
    """Calls, and gives the exception that it has to raise."""
    try:
        result = call()
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__}, but {result!r}")


def until(ask):
    """Asks again until something is true, for a minute."""
    end = time.monotonic() + 60
    while not ask():
        assert time.monotonic() < end, "it did not come true in a minute"
        time.sleep(0.05)


def done():
    """Ends the script without the interpreter's own end, in which threads of pyqwest can abort it
    (https://github.com/curioswitch/pyqwest/issues/164)."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(1 if broken else 0)
