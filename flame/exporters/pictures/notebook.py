"""Draw a trace for a notebook."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from html import escape

from flame.core.errors import FlameError
from flame.core.model.profile import Profile
from flame.core.projection.labels import Naming
from flame.core.projection.project import project
from flame.core.projection.selection import Selection
from flame.core.shown_text import printable
from flame.exporters.pictures import svg
from flame.exporters.pictures.icicle_svg import (
    ROW,
    Limits,
    describe_frame,
    draw_frames,
    drawn_nodes,
)
from flame.exporters.pictures.svg_script import STYLE

_LIMITS = Limits(smallest=0.001, most=1_000, deepest=60)
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
    nodes = drawn_nodes(tree, _LIMITS)
    height = (int(tree.depth[nodes].max()) + 1) * ROW
    frames = "".join(draw_frames(tree, nodes, partial(describe_frame, tree)))
    title = escape(printable(svg.titled(tree, name)))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="flame" width="100%" height="{height + 24}"'
        f' role="img" aria-label="{title}">\n<style>{STYLE}</style>\n'
        f'<text x="3" y="16">{title}</text>\n'
        f'<svg class="frames" y="24" width="100%" height="{height}">\n{frames}</svg>\n</svg>\n'
    )
