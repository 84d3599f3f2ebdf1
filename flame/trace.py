"""Open traces and ask them: the public face of everything below."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from flame.core.errors import UsageError
from flame.core.lazy_dataclass import dataclass
from flame.core.loading import many
from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree, TreeLayout
from flame.core.names.rename import Rename
from flame.core.options import LoadOptions, Progress, silent
from flame.core.projection.filters import Filter
from flame.core.projection.project import project
from flame.core.projection.selection import select

if TYPE_CHECKING:
    from typing import Any, Literal

    from flame.core.analysis.trace_summary import TraceSummary
    from flame.exporters.tables.columns import Columns

    Rows = Literal["activities", "tree"]


@dataclass(frozen=True, eq=False)
class Trace:
    """A trace that has been read: ``profile`` holds its columns, the methods ask questions."""

    profile: Profile

    def tree(
        self,
        levels: str | tuple[str, ...] | None = None,
        where: tuple[Filter, ...] = (),
        metric: str | None = None,
        *,
        kernel_names: str = "base",
        shapes: bool = False,
        rename: tuple[Rename, ...] = (),
        fold: bool = False,
        fold_numbers: bool = False,
        layout: TreeLayout | None = None,
        forward: bool = True,
    ) -> StackTree:
        """Project the trace to a stack tree; see `flame.core.projection.project.project`.

        ``levels`` may be a text such as ``"nvtx,kernel"``; ``where`` is what `flame.where` makes.
        ``forward`` leaves backward passes below the forward operators that `LoadOptions` links.
        Raises NoMatchError when filters leave nothing, UsageError for unknown levels and metrics.
        """
        selection = select(
            levels,
            where,
            metric,
            kernel_names=kernel_names,
            shapes=shapes,
            rename=rename,
            fold=fold,
            fold_numbers=fold_numbers,
            layout=layout,
            forward=forward,
        )
        return project(self.profile, selection)

    def to_arrow(self, what: Rows = "activities", **chosen: Any) -> Any:
        """Make a ``pyarrow.Table``: a row per GPU activity, or per node of the ``tree``.

        ``chosen`` are arguments of `tree`. Texts are dictionaries, what is not known is null.
        Polars, DuckDB and others take it without a copy, by Arrow's PyCapsule interface. Raises
        UsageError where pyarrow is not installed, and as `tree`.
        """
        from flame.exporters.tables.dataframes import as_arrow

        return as_arrow(self._columns(what, chosen))

    def to_pandas(self, what: Rows = "activities", **chosen: Any) -> Any:
        """Make a ``pandas.DataFrame``, otherwise as `to_arrow`; it needs pandas alone."""
        from flame.exporters.tables.dataframes import as_pandas

        return as_pandas(self._columns(what, chosen))

    def to_polars(self, what: Rows = "activities", **chosen: Any) -> Any:
        """Make a ``polars.DataFrame``, otherwise as `to_arrow`; it needs polars alone."""
        from flame.exporters.tables.dataframes import as_polars

        return as_polars(self._columns(what, chosen))

    def __arrow_c_stream__(self, requested_schema: object = None) -> Any:
        """Hand the activities over by Arrow's PyCapsule interface: ``polars.DataFrame(trace)``.

        Otherwise as `to_arrow`.
        """
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def _columns(self, what: Rows, chosen: dict[str, Any]) -> Columns:
        from flame.exporters.tables.columns import activity_columns, tree_columns

        if what == "tree":
            return tree_columns(self.tree(**chosen))
        if what != "activities" or chosen:
            choices = "'activities', or 'tree' with arguments of Trace.tree"
            raise UsageError(f"{what!r}: choose {choices}")
        return activity_columns(self.profile)

    def _repr_html_(self) -> str:
        """Draw the flame graph for a notebook: SVG without a script, a tooltip for each frame."""
        from flame.exporters.pictures.notebook import draw_trace

        return draw_trace(self.profile)

    def info(self) -> TraceSummary:
        """Summarize what the trace holds and how much of it could be attributed."""
        from flame.core.analysis.trace_summary import summarize

        return summarize(self.profile)


def load(
    path: str | Path, options: LoadOptions | None = None, progress: Progress = silent
) -> Trace:
    """Open the trace at ``path``, or all dumps in a folder; see `flame.core.loading.many.load`."""
    return Trace(many.load(path, options, progress))


def load_all(
    paths: Sequence[str | Path], options: LoadOptions | None = None, progress: Progress = silent
) -> Trace:
    """Open several traces as one; see `flame.core.loading.many.load_all`."""
    return Trace(many.load_all(paths, options, progress))
