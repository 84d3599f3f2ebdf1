"""Draw a trace for a notebook."""

from __future__ import annotations

from dataclasses import replace
from html import escape

from flame.core.errors import FlameError
from flame.core.model.profile import Profile
from flame.core.projection.labels import Naming
from flame.core.projection.project import project
from flame.core.projection.selection import Selection
from flame.core.shown_text import printable
from flame.exporters.pictures import svg
from flame.exporters.pictures.icicle_svg import PictureLimits

_LIMITS = PictureLimits(smallest=0.001, most=1_000, deepest=60)
"""A notebook keeps what it shows: some 200 KB at most."""


def draw_trace(profile: Profile) -> str:
    """Draw the usual picture of ``profile`` without a script; a sentence where it is empty."""
    selection = replace(Selection(), naming=Naming(kernel_names="short", numbers=True))
    name = profile.meta.path.rpartition("/")[2] or "trace"
    try:
        tree = project(profile, selection)
    except FlameError as error:
        return f"<p>{escape(printable(str(error)))}</p>"
    if not tree.total[0]:
        return f"<p>{escape(printable(name))}: {escape(tree.metric.title)} is zero</p>"
    return svg.draw(tree, svg.titled(tree, name), limits=_LIMITS, hint="")
