"""A backend of matplotlib: a figure that is shown is written to the directory of artifacts."""

import os

from matplotlib import _pylab_helpers
from matplotlib.backends.backend_agg import FigureCanvasAgg as FigureCanvas  # noqa: F401, what matplotlib looks for

_shown = 0


def show(*args, **kwargs):
    """Write each open figure as plot-N.png, and close it."""
    global _shown
    for manager in _pylab_helpers.Gcf.get_all_fig_managers():
        _shown += 1
        manager.canvas.figure.savefig(os.path.join(os.environ["PADDOCK_ARTIFACTS"], "plot-%d.png" % _shown))
    _pylab_helpers.Gcf.destroy_all()
