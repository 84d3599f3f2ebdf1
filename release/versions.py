"""Read the version where it is written, and write it there: code, CHANGELOG, manual pages."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import NamedTuple

from release.tools import ROOT, ReleaseError, run

_IN_CODE = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
_SECTION = re.compile(r"^## \[([^\]]+)\](?: - (.+))?$", re.MULTILINE)
_IN_MANUAL = re.compile(r'^\.TH \S+ 1 "" "flame ([^"]+)"', re.MULTILINE)
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+((a|b|rc)[0-9]+)?")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
UNRELEASED = "Unreleased"


class Section(NamedTuple):
    """Hold the heading of a section of the CHANGELOG, and whether anything is below it."""

    version: str
    date: str
    has_text: bool

    @property
    def is_dated(self) -> bool:
        """Whether the section has a date, and so is that of a version to publish."""
        return _DATE.fullmatch(self.date) is not None


def version_of(root: Path) -> str:
    """Read the version that the code of the checkout has."""
    found = _IN_CODE.search((root / "flame" / "_version.py").read_text("utf-8"))
    if found is None:
        raise ReleaseError("no version in flame/_version.py")
    return found[1]


def newest_section(root: Path) -> Section:
    """Read the first section of the checkout's CHANGELOG."""
    text = (root / "CHANGELOG.md").read_text("utf-8")
    heading = _SECTION.search(text)
    if heading is None:
        raise ReleaseError("CHANGELOG.md has no section")
    following = _SECTION.search(text, heading.end())
    body = text[heading.end() : following.start() if following else None]
    return Section(heading[1], heading[2] or "", bool(body.strip()))


def check_versions(root: Path) -> Section:
    """Check that code, CHANGELOG and manual pages are of one version; returns its section."""
    version, section = version_of(root), newest_section(root)
    if section.version != version:
        raise ReleaseError(
            f"flame/_version.py has {version}, the first section of CHANGELOG.md {section.version}"
        )
    if not section.has_text:
        raise ReleaseError(f"CHANGELOG.md says nothing of {version}")
    if not section.is_dated and section.date != UNRELEASED:
        raise ReleaseError(
            f"CHANGELOG.md: ## [{version}] wants a date (YYYY-MM-DD) or {UNRELEASED}"
        )
    for page in sorted((root / "docs" / "man").glob("*.1")):
        found = _IN_MANUAL.search(page.read_text("utf-8"))
        if found is None or found[1] != version:
            told = found[1] if found else "no version"
            raise ReleaseError(f"docs/man/{page.name} is of {told}, not {version}: run make man")
    return section


def set_version(root: Path, version: str) -> None:
    """Write ``version`` into the code and above what the CHANGELOG has under Unreleased."""
    if not _VERSION.fullmatch(version):
        raise ReleaseError(f"{version!r} is no version: 0.2.0, 0.2.0rc1")
    code, changelog = root / "flame" / "_version.py", root / "CHANGELOG.md"
    code.write_text(_IN_CODE.sub(f'__version__ = "{version}"', code.read_text("utf-8")), "utf-8")
    section, text = newest_section(root), changelog.read_text("utf-8")
    if section.version == UNRELEASED:
        heading = f"## [{version}] - {UNRELEASED}"
        changelog.write_text(_SECTION.sub(heading, text, count=1), "utf-8")


def main(words: list[str]) -> int:
    """Set the version that ``words`` name, and write what is generated from it."""
    try:
        (version,) = words
        set_version(ROOT, version)
        run(sys.executable, "docs/generate.py")
        check_versions(ROOT)
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print(f"flame is {version}: commit that; then `make release` builds it")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
