"""Put what was built into the folder of its release, with checksums; replace nothing unasked."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from release.tools import ReleaseError

SUMS = "SHA256SUMS"


def write_sums(folder: Path) -> Path:
    """Write the SHA-256 of every file of ``folder``, as ``sha256sum --check`` reads them."""
    target = folder / SUMS
    files = sorted(path for path in folder.iterdir() if path != target)
    target.write_text("".join(f"{digest(path)}  {path.name}\n" for path in files), "utf-8")
    return target


def digest(path: Path) -> str:
    """Return the SHA-256 of a file, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_room(built: Path, target: Path) -> None:
    """Refuse to put ``built`` where a file of a release would be replaced, or left beside it."""
    if not target.exists():
        return
    there = {path.name: path for path in target.iterdir()}
    new = {path.name: path for path in built.iterdir()}
    other = sorted(
        name for name, path in there.items() if name not in new or digest(path) != digest(new[name])
    )
    if other:
        raise ReleaseError(
            f"{target} has other files of this version: {', '.join(other)} (--replace removes them)"
        )


def put(built: Path, target: Path, replace: bool) -> None:
    """Move the folder ``built`` to ``target``; what is there goes only if ``replace``."""
    if not replace:
        check_room(built, target)
    old = target.with_name(f".{target.name}.old")
    shutil.rmtree(old, ignore_errors=True)
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        target.rename(old)
    shutil.move(built, target)
    shutil.rmtree(old, ignore_errors=True)
