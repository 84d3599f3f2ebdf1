"""Make a release from a clean checkout, up to the step that publishes it: ``make release``."""

from __future__ import annotations

import argparse
import platform
import shutil
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from release.bill import write_bill
from release.folder import put, write_sums
from release.pyz import pack
from release.tools import PLACE, ROOT, ReleaseError, build, environment, run
from release.trials import try_files
from release.versions import Section, check_versions
from release.wheels import DIST, MACHINES, build_pure_wheel, build_wheel, made


def main(words: list[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    parser = argparse.ArgumentParser(prog="make release", description=__doc__)
    parser.add_argument("--replace", action="store_true", help="replace files of the same version")
    parser.add_argument("--machines", nargs="+", choices=MACHINES, default=MACHINES)
    parser.add_argument("--no-trial", action="store_true", help="build, and install nothing")
    args = parser.parse_args(words)
    try:
        commit = check_tree(ROOT)
        section = check_versions(ROOT)
        target = DIST / f"flame-{section.version}"
        with TemporaryDirectory(prefix="new.", dir=made(PLACE)) as scratch:
            built = made(Path(scratch) / target.name)
            tried = make_files(built, section.version, args.machines, not args.no_trial)
            put(built, target, args.replace)
    except ReleaseError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    print("\n".join([*tried, "", *next_steps(target, section, commit)]))
    return 0


def check_tree(root: Path) -> str:
    """Check that the checkout is as it was committed; returns the commit."""
    if changed := run("git", "status", "--porcelain", cwd=root).splitlines():
        more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
        raise ReleaseError(f"not committed: {changed[0][3:]}{more}")
    return run("git", "rev-parse", "HEAD", cwd=root).strip()


def make_files(folder: Path, version: str, machines: list[str], trial: bool) -> list[str]:
    """Build all files of the release into ``folder``; returns a line about each.

    Wheels are built from the unpacked sdist: so that is whole, and no other file gets into them.
    """
    python = environment()
    sdist = build(python, ROOT, folder, "--sdist")
    # Always the same place: the compiler does again only what has changed there.
    shutil.rmtree(PLACE / "source", ignore_errors=True)
    run(sys.executable, "-m", "tarfile", "-e", sdist, PLACE / "source")
    source = PLACE / "source" / sdist.name.removesuffix(".tar.gz")
    pure = build_pure_wheel(python, source, folder)
    wheels = {machine: build_wheel(machine, python, source, folder) for machine in machines}
    here = wheels.get(platform.machine())
    packed = [pack(here, python, folder)] if here else []
    files = [sdist, pure, *wheels.values(), *packed]
    run(python, "-m", "twine", "check", "--strict", *(file for file in files if file not in packed))
    lines = try_files(files, version) if trial else [file.name for file in files]
    bill = write_bill(pure, version, python, folder)
    return [*lines, bill.name, write_sums(folder).name]


def next_steps(folder: Path, section: Section, commit: str) -> list[str]:
    """Say what is left for a person to do."""
    place, tag = folder.relative_to(ROOT), f"v{section.version}"
    begin = f"{place}/ has flame {section.version} of {commit[:12]}."
    begin += " Nothing is published, nothing tagged."
    if not section.is_dated:
        return [begin, f"To publish: a date for [{section.version}] in CHANGELOG.md, and again."]
    return [
        f"{begin} Next (docs/releasing.md):",
        f"  git tag -s {tag} -m 'flame {section.version}' {commit[:12]} && git push origin {tag}",
        f"  the files of {place}/ to the release {tag}, sdist and wheels to the package index",
    ]
