"""Open traces and ask them: the public face of everything below."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

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
    from flame.core.analysis.trace_summary import TraceSummary


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
