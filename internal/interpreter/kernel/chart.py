# What a figure of matplotlib shows, as data: read from public attributes of its
# axes when it is drawn. boxplot alone leaves no trace of its numbers in them, so
# they are taken as they pass.
import weakref

boxes = weakref.WeakKeyDictionary()


def watch_boxes():
    from matplotlib.axes import Axes
    if getattr(Axes.bxp, "watched", False):
        return
    draw = Axes.bxp

    def bxp(self, bxpstats, *args, **kwargs):
        boxes.setdefault(self, []).extend(dict(s) for s in bxpstats)
        return draw(self, bxpstats, *args, **kwargs)
    bxp.watched = True
    bxp.__doc__, bxp.__name__ = draw.__doc__, draw.__name__
    Axes.bxp = bxp


def picture(figure):
    import io
    data = {}
    out = io.BytesIO()
    figure.savefig(out, format="png", bbox_inches="tight")
    data["image/png"] = out.getvalue()
    try:
        found = chart(figure)
        if found is not None:
            data[CHART] = found
    except Exception:
        pass  # the picture is there; what it shows could not be read
    return data


def chart(figure):
    axes = [a for a in figure.axes if a.get_visible() and a.get_label() != "<colorbar>"]
    if not axes:
        return None
    if len(axes) == 1:
        return axis_chart(axes[0])
    title = figure._suptitle.get_text() if getattr(figure, "_suptitle", None) else None
    if hasattr(figure, "get_suptitle"):
        title = figure.get_suptitle() or None
    return {"type": "superchart", "title": title, "elements": [axis_chart(a) for a in axes]}


def axis_chart(ax):
    from matplotlib.collections import PathCollection
    from matplotlib.container import BarContainer
    from matplotlib.patches import Wedge
    base = {"type": "unknown", "title": ax.get_title() or None, "elements": []}
    bars = [c for c in ax.containers if isinstance(c, BarContainer) and len(c.patches)]
    points = [c for c in ax.collections if isinstance(c, PathCollection) and len(c.get_offsets())]
    lines = [line for line in ax.lines if len(line.get_xdata())]
    if ax in boxes:
        return dict(base, type="box_and_whisker", elements=box_elements(ax), **labels(ax))
    if ax.patches and all(isinstance(p, Wedge) for p in ax.patches):
        return dict(base, type="pie", elements=[
            {"label": p.get_label(), "angle": round(float(p.theta2 - p.theta1), 3), "radius": float(p.r)} for p in ax.patches])
    if bars:
        return dict(base, type="bar", elements=bar_elements(ax, bars), **labels(ax))
    if points:
        found = [{"label": label(c), "points": [[place(ax.xaxis, x), place(ax.yaxis, y)] for x, y in plain_pairs(c)]} for c in points]
        return dict(base, type="scatter", elements=found, **scales(ax))
    if lines:
        found = [{"label": label(line), "points": line_points(ax, line)} for line in lines]
        return dict(base, type="line", elements=found, **scales(ax))
    return base


def label(artist):
    text = str(artist.get_label())
    return "" if text.startswith("_") else text


def unit(text):
    found = re.search(r"[(\[]([^()\[\]]+)[)\]]\s*$", text)
    return found.group(1).strip() if found else None


def labels(ax):
    x, y = ax.get_xlabel(), ax.get_ylabel()
    return {"x_label": x or None, "y_label": y or None, "x_unit": unit(x), "y_unit": unit(y)}


def scales(ax):
    found = labels(ax)
    for name, axis in (("x", ax.xaxis), ("y", ax.yaxis)):
        found[name + "_ticks"] = [place(axis, t) if scale(axis) == "datetime" else clean(float(t)) for t in axis.get_ticklocs()]
        found[name + "_tick_labels"] = [t.get_text() for t in axis.get_ticklabels()]
        found[name + "_scale"] = scale(axis)
    return found


def scale(axis):
    converter = axis.get_converter() if hasattr(axis, "get_converter") else axis.converter
    kind = type(converter).__name__
    if "Date" in kind or "Period" in kind:
        return "datetime"
    if "Category" in kind:
        return "categorical"
    name = axis.get_scale()
    return name if name in ("linear", "log", "symlog", "logit", "function", "functionlog", "asinh") else "unknown"


def place(axis, value):
    """Gives a number on an axis as what it stands for."""
    kind = scale(axis)
    if kind == "datetime":
        from matplotlib.dates import num2date
        try:
            return num2date(float(value)).isoformat()
        except (ValueError, OverflowError):
            return clean(float(value))
    if kind == "categorical":
        try:
            return category(axis).get(float(value), clean(float(value)))
        except (TypeError, ValueError):
            return str(value)
    return clean(float(value))


def category(axis):
    formatter = axis.get_major_formatter()
    ticks = list(axis.get_major_locator()())
    return {float(t): text for t, text in zip(ticks, formatter.format_ticks(ticks))}


def plain_pairs(collection):
    import numpy
    return numpy.ma.getdata(collection.get_offsets()).tolist()


def line_points(ax, line):
    xs, ys = line.get_xdata(orig=False), line.get_ydata(orig=False)
    return [[place(ax.xaxis, x), place(ax.yaxis, y)] for x, y in zip(xs, ys)]


def bar_elements(ax, bars):
    found = []
    for c in bars:
        lying = getattr(c, "orientation", "vertical") == "horizontal"
        axis = ax.yaxis if lying else ax.xaxis
        named = {round(float(t), 6): text.get_text() for t, text in zip(axis.get_ticklocs(), axis.get_ticklabels())}
        for p in c.patches:
            at = p.get_y() + p.get_height() / 2 if lying else p.get_x() + p.get_width() / 2
            name = named.get(round(float(at), 6)) or str(place(axis, at))
            found.append({"label": name, "group": label(c), "value": clean(float(p.get_width() if lying else p.get_height()))})
    return found


def box_elements(ax):
    found = []
    ticks = [t.get_text() for t in ax.get_xticklabels()]
    if not any(ticks) or len(ticks) != len(boxes[ax]):
        ticks = [t.get_text() for t in ax.get_yticklabels()] if len(ax.get_yticks()) == len(boxes[ax]) else ticks
    for n, s in enumerate(boxes[ax]):
        name = s.get("label") or (ticks[n] if n < len(ticks) else "") or str(n + 1)
        found.append({
            "label": str(name), "min": clean(float(s["whislo"])), "first_quartile": clean(float(s["q1"])), "median": clean(float(s["med"])),
            "third_quartile": clean(float(s["q3"])), "max": clean(float(s["whishi"])), "outliers": clean(list(s.get("fliers", []))),
        })
    return found
