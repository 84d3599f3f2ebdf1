"""Find programs and installed packages, never in the current folder, which may be hostile."""

from __future__ import annotations

import os
import shutil
import site
import sys
from pathlib import Path

HOME = Path(__file__).parents[2]
"""The folder that flame itself is imported from."""


def find_program(name: str) -> str | None:
    """Find the program called ``name`` in the absolute folders of PATH.

    An empty or relative entry of PATH means the current folder, and is left out.
    """
    folders = (folder for folder in os.get_exec_path() if Path(folder).is_absolute())
    return shutil.which(name, path=os.pathsep.join(folders))


def import_path() -> list[str]:
    """List the absolute folders of ``sys.path``, that of flame among them, for a child to use."""
    folders = [folder for folder in sys.path if Path(folder).is_absolute()]
    return folders if str(HOME) in folders else [*folders, str(HOME)]


def package_folders() -> list[Path]:
    """List the folders that packages are installed in, beside flame, for this Python, this user.

    Not ``sys.path``: ``python -m`` and ``python -c`` put the current folder there.
    """
    user = [site.getusersitepackages()] if site.ENABLE_USER_SITE else []
    folders = [str(HOME), *site.getsitepackages(), *user]
    return [Path(folder) for folder in dict.fromkeys(folders) if Path(folder).is_absolute()]
