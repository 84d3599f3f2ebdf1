"""Name the folders in which a user's programs keep their files (XDG Base Directory)."""

from __future__ import annotations

import os
from pathlib import Path


def user_folder(variable: str, default: str) -> Path:
    """Name flame's folder in the one that the environment's ``variable`` names, or in ``default``.

    A relative value is ignored, as the specification asks: it would be in the current folder.
    ``default`` begins with ``~``, and stays as it is where nobody's home folder is known.
    """
    folder = os.environ.get(variable, "")
    home = os.path.expanduser(default)  # noqa: PTH111 (Path fails where there is no home)
    return Path(folder if folder.startswith("/") else home, "flame")
