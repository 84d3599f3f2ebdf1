"""A release is refused where the version, the CHANGELOG and the manual pages do not agree."""

from __future__ import annotations

from pathlib import Path

import pytest

from release.tools import ReleaseError
from release.versions import check_versions, set_version
from tests.support.paths import ROOT

CHANGELOG = """# Changelog

## [0.3.0] - Unreleased

### Added

- more

## [0.2.0] - 2026-12-01

- some
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with what a checkout says of its version, all of it 0.3.0."""
    (tmp_path / "flame").mkdir()
    (tmp_path / "docs" / "man").mkdir(parents=True)
    (tmp_path / "flame" / "_version.py").write_text('"""The version."""\n\n__version__ = "0.3.0"\n')
    (tmp_path / "docs" / "man" / "flame.1").write_text('.TH FLAME 1 "" "flame 0.3.0" "flame"\n')
    (tmp_path / "CHANGELOG.md").write_text(CHANGELOG)
    return tmp_path


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_this_checkout_agrees() -> None:
    check_versions(ROOT)


def test_a_section_without_a_date_is_not_for_publishing(checkout: Path) -> None:
    assert not check_versions(checkout).is_dated
    replace(checkout / "CHANGELOG.md", "[0.3.0] - Unreleased", "[0.3.0] - 2026-12-24")
    assert check_versions(checkout).is_dated


@pytest.mark.parametrize(
    ("file", "old", "new", "told"),
    [
        ("flame/_version.py", "0.3.0", "0.4.0", "has 0.4.0, the first section of CHANGELOG.md 0.3"),
        ("flame/_version.py", "__version__", "version", "no version in flame/_version.py"),
        ("CHANGELOG.md", "## [", "## ", "CHANGELOG.md has no section"),
        ("CHANGELOG.md", "### Added\n\n- more\n", "", "CHANGELOG.md says nothing of 0.3.0"),
        ("CHANGELOG.md", "Unreleased", "soon", "wants a date (YYYY-MM-DD) or Unreleased"),
        ("docs/man/flame.1", "0.3.0", "0.2.0", "docs/man/flame.1 is of 0.2.0, not 0.3.0: run make"),
        ("docs/man/flame.1", ".TH", ".XX", "docs/man/flame.1 is of no version"),
    ],
)
def test_what_does_not_agree_is_refused(
    file: str, old: str, new: str, told: str, checkout: Path
) -> None:
    replace(checkout / file, old, new)
    with pytest.raises(ReleaseError) as error:
        check_versions(checkout)
    assert told in str(error.value) and "\n" not in str(error.value)


def test_a_version_is_written_to_code_and_changelog(checkout: Path) -> None:
    replace(checkout / "CHANGELOG.md", "## [0.3.0] - Unreleased", "## [Unreleased]")
    set_version(checkout, "0.3.1rc1")
    assert '__version__ = "0.3.1rc1"\n' in (checkout / "flame" / "_version.py").read_text()
    changelog = (checkout / "CHANGELOG.md").read_text()
    assert "## [0.3.1rc1] - Unreleased\n" in changelog and "## [0.2.0] - 2026-12-01" in changelog


@pytest.mark.parametrize("version", ["1", "v0.3.0", "0.3", "0.3.0-beta", '0.3.0"'])
def test_what_is_no_version_is_not_written(version: str, checkout: Path) -> None:
    with pytest.raises(ReleaseError, match="is no version"):
        set_version(checkout, version)
    assert "0.3.0" in (checkout / "flame" / "_version.py").read_text()
