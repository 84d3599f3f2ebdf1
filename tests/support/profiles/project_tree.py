"""Project a profile with the words of the public API, without a `Trace` around it."""

from __future__ import annotations

from typing import Any

from flame.core.model.profile import Profile
from flame.core.model.tree import StackTree
from flame.core.projection.project import project
from flame.core.projection.selection import select


def project_tree(profile: Profile, *values: Any, **named: Any) -> StackTree:
    """Project ``profile`` under the selection that `select` makes of the values."""
    return project(profile, select(*values, **named))
