"""The filters dialog, opened where a frame is selected."""

from __future__ import annotations

from flame.core.model.frames import Kind
from flame.core.model.profile import Profile
from flame.core.projection.filters import Filter
from flame.tui.dialogs.filters import FiltersDialog
from flame.tui.session.query import SelectedName

MS = 1_000_000


def dialog(
    profile: Profile, *where: Filter, name: str = "gemm", kind: Kind = Kind.KERNEL
) -> FiltersDialog:
    return FiltersDialog(profile, where, SelectedName(name, kind))
