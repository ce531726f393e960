# The kernel for Python. It is executed by a program that gave it `requests` (where
# lines of JSON come from) and `mark` (what its messages begin with). The standard
# library alone, from 3.8 on.
import ast
import base64
import builtins
import functools
import importlib.machinery
import json
import linecache
import math
import os
import re
import signal
import sys
import textwrap
import threading
import traceback
import types



def opened(fd):
    """Opens a stream anew: programs that a cell runs make the one they share non-blocking."""
    try:
        return os.open("/proc/self/fd/%d" % fd, os.O_WRONLY)
    except OSError:
        return os.dup(fd)


OUT, ERR = opened(1), opened(2)
PID = os.getpid()
LARGEST = 6 << 20  # bytes of one form of a result; larger ones are left out
state = types.SimpleNamespace(running=False, asked=False, half=False, count=0, seq="0", loop=None)
lock = threading.RLock()

user = types.ModuleType("__main__")
user.__dict__.update(__builtins__=builtins, __name__="__main__", _=None)
sys.modules["__main__"] = user
names = user.__dict__


def send(message, fd=OUT):
    if os.getpid() != PID:
        return  # messages are the kernel's, not its children's
    data = json.dumps(message, ensure_ascii=True).encode("ascii")
    size = 4096 - 38
    with lock:
        if state.half:  # somebody was interrupted here
            os.write(OUT, b"\x1e%s!0000" % mark.encode())
        state.half = fd == OUT and len(data) > size
        for at in range(0, len(data), size):
            piece = data[at:at + size]
            last = at + size >= len(data)
            os.write(fd, b"\x1e%s%s%04x%s" % (mark.encode(), b"." if last else b"+", len(piece), piece))
        state.half = False


def flush():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:
            pass  # the user closed or replaced it
    if "_ctypes" in sys.modules:
        try:
            import ctypes
            ctypes.CDLL(None).fflush(None)
        except Exception:
            pass  # there is no C library that could hold anything


# Results.

METHODS = {
    "_repr_html_": "text/html", "_repr_markdown_": "text/markdown", "_repr_svg_": "image/svg+xml",
    "_repr_png_": "image/png", "_repr_jpeg_": "image/jpeg", "_repr_pdf_": "application/pdf",
    "_repr_latex_": "text/latex", "_repr_json_": "application/json", "_repr_javascript_": "application/javascript",
}
DATA, CHART = "application/vnd.paddock.data+json", "application/vnd.paddock.chart+json"


def clean(value, depth=0):
    """Makes a value one that JSON has."""
    if depth > 64:
        return None
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, dict):
        return {str(k): clean(v, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [clean(v, depth + 1) for v in value]
    if type(value).__name__ in ("NaTType", "NAType"):
        return None
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        return clean(value.item(), depth + 1)
    if hasattr(value, "tolist"):
        return clean(value.tolist(), depth + 1)
    return str(value)


def is_json(kind):
    return kind == "application/json" or kind.endswith("+json")


def form(kind, value):
    """Gives a form as it is sent, or None where it is none."""
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], dict):
        value = value[0]  # with metadata
    if value is None:
        return None
    if is_json(kind):
        value = clean(value)
    elif isinstance(value, (bytes, bytearray, memoryview)):
        value = base64.b64encode(bytes(value)).decode("ascii")
    elif not isinstance(value, str):
        value = str(value)
    size = len(value) if isinstance(value, str) else len(json.dumps(value))
    return value if size <= LARGEST else None


def plain(value):
    text = repr(value)
    if 79 < len(text) <= 200000 and isinstance(value, (list, tuple, dict, set, frozenset)):
        import pprint
        try:
            text = pprint.pformat(value, width=79, sort_dicts=False)
        except Exception:
            pass  # repr is as good
    return text


def named(value, module, name):
    return any(c.__name__ == name and c.__module__.split(".")[0] == module for c in type(value).__mro__)


def bundle(value):
    """Gives all forms of a value, by media type."""
    data = {}
    if not isinstance(value, type):
        own = getattr(type(value), "_repr_mimebundle_", None)
        if own is not None:
            try:
                got = value._repr_mimebundle_(include=None, exclude=None)
                got = got[0] if isinstance(got, tuple) else got
                data.update({str(k): v for k, v in (got or {}).items()})
            except NotImplementedError:
                pass
        for method, kind in METHODS.items():
            if kind not in data and callable(getattr(type(value), method, None)):
                try:
                    data[kind] = getattr(value, method)()
                except NotImplementedError:
                    pass
                except ValueError:
                    if not named(value, "PIL", "Image"):  # it has not every form: transparency is none of JPEG's
                        raise
        if named(value, "matplotlib", "Figure"):
            data.update(picture(value))
        if named(value, "pandas", "DataFrame"):
            try:
                data[DATA] = {str(k): list(v) for k, v in value.to_dict(orient="list").items()}
            except Exception:
                pass  # two columns of one name
    if "text/plain" not in data:
        data["text/plain"] = plain(value)
    sent = {}
    for kind, v in data.items():
        v = form(kind, v)
        if v is not None:
            sent[kind] = v
    return sent or {"text/plain": "(too large to be shown)"}


def show(data, main=False):
    flush()
    message = {"t": "result", "n": state.seq, "main": main, "data": data}
    while len(message["data"]) > 1 and sum(len(json.dumps(v)) for v in data.values()) > LARGEST:
        data.pop(max(data, key=lambda k: len(json.dumps(data[k]))))
    send(message)


def display(*values, raw=False, include=None, exclude=None, **_):
    """Shows values in all their forms; with raw, dictionaries of media types."""
    for value in values:
        if raw and isinstance(value, dict):
            data = {k: v for k, v in ((str(k), form(str(k), v)) for k, v in value.items()) if v is not None}
        else:
            data = bundle(value)
        data = {k: v for k, v in data.items() if (not include or k in include) and (not exclude or k not in exclude)}
        if data:
            show(data)


# What programs expect of IPython, where it is asked for.

class Shown:
    """Something in one form, from data, a file or a URL."""
    kind = "text/plain"

    def __init__(self, data=None, url=None, filename=None, **_):
        self.data, self.url, self.filename = data, url, filename
        if filename is not None and data is None:
            with open(filename, "rb") as f:
                self.data = f.read()
        if url is not None and self.data is None:
            import urllib.request
            with urllib.request.urlopen(url) as f:
                self.data = f.read()
        if isinstance(self.data, bytes) and not self.kind.startswith(("image/p", "image/j", "image/g", "application/pdf")):
            self.data = self.data.decode("utf-8")

    def _repr_mimebundle_(self, include=None, exclude=None):
        return {self.kind: self.data, "text/plain": repr(self)}

    def __repr__(self):
        return "<IPython.core.display.%s object>" % type(self).__name__


class Image(Shown):
    def __init__(self, data=None, url=None, filename=None, format=None, **more):
        if isinstance(data, str):
            name, data = data, None
            url, filename = (name, filename) if re.match("https?:", name) else (url, name)
        super().__init__(data, url, filename, **more)
        head = bytes(self.data[:4]) if self.data else b""
        self.kind = "image/jpeg" if head[:2] == b"\xff\xd8" else "image/gif" if head == b"GIF8" else "image/png"


def kinds():
    table = {"HTML": "text/html", "Markdown": "text/markdown", "SVG": "image/svg+xml", "Latex": "text/latex",
             "Math": "text/latex", "JSON": "application/json", "Javascript": "application/javascript", "Pretty": "text/plain"}
    made = {name: type(name, (Shown,), {"kind": kind}) for name, kind in table.items()}
    made["Image"] = Image
    return made


class Events:
    """Calls what programs register for the beginning and the end of a cell."""

    def __init__(self):
        self.callbacks = {"pre_execute": [], "pre_run_cell": [], "post_execute": [], "post_run_cell": [], "shell_initialized": []}

    def register(self, event, function):
        if function not in self.callbacks[event]:
            self.callbacks[event].append(function)

    def unregister(self, event, function):
        self.callbacks[event].remove(function)

    def trigger(self, event, *args):
        for function in list(self.callbacks[event]):
            try:
                function(*args)
            except Exception:
                traceback.print_exc()  # as IPython does, the cell goes on


class Shell:
    """What get_ipython() gives: commands, a few magics, and what libraries ask of it."""
    user_ns = names
    config = {}

    def __init__(self):
        self.events = Events()

    def has_trait(self, name):
        return False

    def enable_gui(self, gui=None):
        if gui not in (None, "", "inline", "agg"):
            raise NotImplementedError("this kernel has no windows of %s" % gui)

    def system(self, line):
        import subprocess
        flush()
        shell = "/bin/bash" if os.path.exists("/bin/bash") else "/bin/sh"
        code = subprocess.call([shell, "-c", expand(line)], stdin=subprocess.DEVNULL)
        names["_exit_code"] = code
        found_packages()

    def getoutput(self, line):
        import subprocess
        out = subprocess.run(["/bin/sh", "-c", expand(line)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                             stderr=subprocess.STDOUT, universal_newlines=True).stdout.splitlines()
        found_packages()
        return out

    def run_line_magic(self, name, line):
        line = expand(line.strip())
        if name == "pip":
            import shlex
            import subprocess
            flush()
            subprocess.call([sys.executable, "-m", "pip"] + shlex.split(line), stdin=subprocess.DEVNULL)
            found_packages()
        elif name == "cd":
            os.chdir(os.path.expanduser(line or "~"))
            print(os.getcwd())
        elif name == "pwd":
            return os.getcwd()
        elif name in ("env", "set_env"):
            key, found, value = line.partition("=")
            if not line:
                return dict(os.environ)
            if not found:
                key, _, value = line.partition(" ")
                if not value:
                    return os.environ.get(key)
            os.environ[key.strip()] = value.strip()
            print("env: %s=%s" % (key.strip(), value.strip()))
        elif name == "time":
            return self.timed(line)
        elif name in ("matplotlib", "pylab") and line in ("", "inline", "agg"):
            return None  # it is so already
        else:
            raise NameError("the magic %%%s is not known to this kernel: it has %%pip, %%cd, %%pwd, %%env, %%time, %%matplotlib inline, "
                            "%%%%bash, %%%%sh, %%%%time and !command" % name)
        return None

    def run_cell_magic(self, name, line, cell):
        import subprocess
        if name in ("bash", "sh"):
            flush()
            done = subprocess.run([name], input=cell.encode(), check=False).returncode
            if done:
                raise subprocess.CalledProcessError(done, name)
            return None
        if name == "time":
            return self.timed(cell)
        raise NameError("the magic %%%%%s is not known to this kernel: it has %%%%bash, %%%%sh and %%%%time" % name)

    def timed(self, code):
        import time
        wall, used = time.perf_counter(), time.process_time()
        value = evaluate(code, "<timed>")
        print("CPU times: %.3g s\nWall time: %.3g s" % (time.process_time() - used, time.perf_counter() - wall))
        return value


shell = Shell()


def found_packages():
    """Makes packages importable that were installed since the kernel started. Python takes the user's
    directory of packages only if it is there at the start."""
    site = sys.modules.get("site")
    if site is not None and site.ENABLE_USER_SITE:  # else Python was told not to use it
        place = site.getusersitepackages()
        if place not in sys.path and os.path.isdir(place):
            old, known = list(sys.path), set(sys.path)
            site.addsitedir(place)
            new = [p for p in sys.path if p not in known]
            at = next((n for n, p in enumerate(old) if p.endswith(("site-packages", "dist-packages"))), len(old))
            sys.path[:] = old[:at] + new + old[at:]  # before those of the system, as at the start
    for place, finder in list(sys.path_importer_cache.items()):
        if finder is None:
            del sys.path_importer_cache[place]  # it may be a directory by now
        elif hasattr(finder, "invalidate_caches"):
            finder.invalidate_caches()


def expand(line):
    def put(found):
        name = found.group(1) or found.group(2)
        return str(names[name]) if name in names else found.group(0)
    return re.sub(r"\{(\w+)\}|\$(\w+)", put, line)


def translate(code):
    """Makes Python of commands and magics."""
    first, _, rest = code.lstrip().partition("\n")
    if first.startswith("%%"):
        name, _, line = first[2:].partition(" ")
        return "get_ipython().run_cell_magic(%r, %r, %r)" % (name, line, rest)
    lines = []
    for line in code.split("\n"):
        found = re.match(r"(\s*)(?:([A-Za-z_]\w*)\s*=\s*)?([!%])(.+)$", line)
        if not found:
            lines.append(line)
            continue
        indent, name, sign, what = found.groups()
        if sign == "%":
            magic, _, args = what.partition(" ")
            call = "get_ipython().run_line_magic(%r, %r)" % (magic, args)
        else:
            call = "get_ipython().%s(%r)" % ("getoutput" if name else "system", what)
        lines.append(indent + (name + " = " if name else "") + call)
    return "\n".join(lines)


class Finder:  # without importlib.abc, which is half of all that would be loaded at the start
    """Gives the few names of IPython that cells use, and prepares pyplot."""

    def find_spec(self, name, path=None, target=None):
        if name in ("IPython", "IPython.display", "IPython.core", "IPython.core.display", "IPython.core.display_functions",
                    "IPython.core.getipython", "IPython.core.pylabtools"):
            return importlib.machinery.ModuleSpec(name, self, is_package=name in ("IPython", "IPython.core"))
        prepare = {"matplotlib.pyplot": pyplot, "PIL.ImageShow": pictures}.get(name)
        if prepare is not None:
            for finder in sys.meta_path:
                spec = None if finder is self else finder.find_spec(name, path, target)
                if spec is not None:
                    spec.loader.exec_module = functools.partial(prepare, spec.loader.exec_module)
                    return spec
        return None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        module.get_ipython = lambda: shell
        if module.__name__ == "IPython.core.pylabtools":
            module.backend2gui = {}  # no backend here has windows
            return
        module.display = display
        if module.__name__ != "IPython":
            module.clear_output = lambda wait=False: None
            module.publish_display_data = lambda data, *_, **__: display(data, raw=True)
            module.__dict__.update(kinds())
        if module.__name__ == "IPython":
            module.version_info, module.__version__ = (8, 0, 0), "8.0.0"


def pyplot(load, module):
    import matplotlib
    matplotlib.rcParams["backend"] = "agg"
    load(module)
    module.show = figures
    watch_boxes()


def pictures(load, module):
    """Makes Image.show() of PIL a result. Programs of the system that show pictures need a screen."""
    load(module)

    class Viewer(module.Viewer):
        format = "PNG"

        def show_image(self, image, **_):
            display(image)
            return 1
    module.register(Viewer, -1)


def figures(*_, **__):
    """Shows all figures of pyplot, and closes them."""
    plt = sys.modules.get("matplotlib.pyplot")
    if plt is None:
        return
    numbers = plt.get_fignums()
    for number in numbers:
        figure = plt.figure(number)
        try:
            if figure.axes or figure.lines or figure.patches or figure.texts or figure.images:
                show(bundle(figure))
        finally:
            plt.close(figure)


# Cells.

def no_input(*_, **__):
    raise RuntimeError("input() has nobody to ask: give the value in the code")


def on_interrupt(*_):
    if state.running or os.getpid() != PID:
        raise KeyboardInterrupt
    state.asked = True


def compiled(code, name):
    """Gives the statements and the last expression of a cell, each compiled, or None."""
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST
    tree = compile(code, name, "exec", flags, dont_inherit=True)
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr) and not silent(code):
        last = ast.Expression(tree.body.pop().value)
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    body = compile(tree, name, "exec", flags, dont_inherit=True) if tree.body else None
    return body, last and compile(last, name, "eval", flags, dont_inherit=True)


def silent(code):
    """Tells whether a cell ends in a semicolon, a comment aside."""
    import io
    import tokenize
    last = ""
    try:
        for token in tokenize.generate_tokens(io.StringIO(code).readline):
            if token.type not in (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER, tokenize.DEDENT):
                last = token.string
    except (tokenize.TokenError, SyntaxError):
        return False
    return last == ";"


def run(code):
    value = eval(code, names)
    if not code.co_flags & 0x80:  # CO_COROUTINE
        return value
    import asyncio
    if state.loop is None or state.loop.is_closed():
        state.loop = asyncio.new_event_loop()
    loop = state.loop
    asyncio.set_event_loop(loop)
    task = loop.create_task(value)
    try:
        return loop.run_until_complete(task)
    except KeyboardInterrupt:
        # A loop that waits for a task which the interrupt itself has ended never stops. One that the interrupt
        # hit between two steps may have lost the next step, and a task may refuse to end.
        if not task.done():
            task.cancel()
            try:
                loop.run_until_complete(asyncio.wait([task], timeout=5))
            except BaseException:
                pass  # its own end; the interrupt is what is told
        raise


def evaluate(code, name):
    lines = code.splitlines(True)
    linecache.cache[name] = (len(code), None, lines, name)
    first = next((line for line in lines if line.strip()), "")
    if first[:1] in (" ", "\t"):
        code = textwrap.dedent(code)
    try:
        body, last = compiled(code, name)
    except SyntaxError as error:
        changed = translate(code)
        if changed == code:
            raise
        try:
            body, last = compiled(changed, name)
        except SyntaxError:
            raise error from None
    if body is not None:
        run(body)
    return run(last) if last is not None else None


def told(code, name):
    """Evaluates a cell, and calls what is registered for its beginning and its end."""
    info = types.SimpleNamespace(raw_cell=code, cell_id=None, store_history=True, silent=False, shell_futures=True)
    done = types.SimpleNamespace(info=info, execution_count=state.count, result=None, success=False, error_before_exec=None, error_in_exec=None)
    shell.events.trigger("pre_execute")
    shell.events.trigger("pre_run_cell", info)
    try:
        done.result = evaluate(code, name)
        done.success = True
        return done.result
    except BaseException as error:
        done.error_in_exec = error
        raise
    finally:
        if os.getpid() == PID:
            shell.events.trigger("post_execute")
            shell.events.trigger("post_run_cell", done)


def report(error):
    if os.getpid() != PID:  # the cell forked, and this is the child: it ends as any program would
        if isinstance(error, SystemExit):
            if error.code is not None and not isinstance(error.code, int):
                print(error.code, file=sys.stderr)
            flush()
            os._exit(error.code & 255 if isinstance(error.code, int) else error.code is not None)
        traceback.print_exception(type(error), error, error.__traceback__)
        flush()
        os._exit(130 if isinstance(error, KeyboardInterrupt) else 1)
    tb = error.__traceback__
    while tb is not None and not tb.tb_frame.f_code.co_filename.startswith("<cell "):
        tb = tb.tb_next
    try:
        text = "".join(traceback.format_exception(type(error), error, tb))
        value = str(error)
    except Exception:
        text = value = "(it cannot be told: its text fails)"
    flush()
    send({"t": "error", "n": state.seq, "name": type(error).__name__, "value": value[:200000], "traceback": text[-800000:]})


def cell(request):
    state.seq = request["n"]
    if request.get("ping"):
        return
    state.count += 1
    state.asked = False
    send({"t": "begun", "n": state.seq, "count": state.count})
    before = {}
    for name, value in (request.get("env") or {}).items():
        before[name] = os.environ.get(name)
        os.environ[name] = value
    try:
        state.running = True
        if state.asked:
            raise KeyboardInterrupt
        found_packages()  # also those that a command of the sandbox installed
        value = told(request["code"], "<cell %d>" % state.count)
        if value is not None:
            names["_"] = value
            show(bundle(value), main=True)
            if named(value, "matplotlib", "Figure") and "matplotlib.pyplot" in sys.modules:
                sys.modules["matplotlib.pyplot"].close(value)
        figures()
        state.running = False
    except BaseException as error:
        state.running = False
        report(error)
    finally:
        state.running = False
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def serve():
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
        except (AttributeError, ValueError):
            pass  # it is not one of Python's own
    signal.signal(signal.SIGINT, on_interrupt)
    builtins.input = no_input
    names["display"], names["get_ipython"] = display, lambda: shell
    sys.meta_path.insert(0, Finder())
    sys.argv = [""]
    send({"t": "ready", "n": "0"})
    send({"t": "ready", "n": "0"}, ERR)
    while True:
        line = requests.readline()
        if not line:
            break
        try:
            cell(json.loads(line))
        except BaseException as error:
            state.running = False
            report(error)
        if os.getpid() != PID:
            flush()
            os._exit(0)  # the cell forked, and this is the child
        flush()
        send({"t": "end", "n": state.seq})
        send({"t": "end", "n": state.seq}, ERR)
    os._exit(0)
