"""Files that commands write are packed as their names say."""

from __future__ import annotations

import gzip
import json
import shlex
from pathlib import Path

import pytest

from tests.cli.conftest import Flame

GZIP = b"\x1f\x8b"


@pytest.mark.parametrize(
    "line",
    [
        "export run.sqlite -f speedscope -o {}.json",
        "export run.sqlite -f chrome -o {}.json",
        "export run.sqlite -f svg -o {}.svg",
        "export run.sqlite -f csv -o {}.csv",
        "top run.sqlite --json -o {}.json",
        "report run.sqlite --md -o {}.md",
        "report run.sqlite --html {}.html",
        "diff run.sqlite run.sqlite --json -o {}.json",
    ],
)
def test_a_name_that_ends_in_gz_is_packed_and_no_other(
    line: str, flame: Flame, trace: Path
) -> None:
    assert flame(*shlex.split(line.format("plain"))).code == 0
    assert flame(*shlex.split(f"{line.format('packed')}.gz")).code == 0
    [plain], [packed] = Path().glob("plain.*"), Path().glob("packed.*")
    assert not plain.read_bytes().startswith(GZIP)
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    assert packed.read_bytes()[4:8] == bytes(4), "the same every time"
    assert {path.name[:6] for path in Path().iterdir()} == {"run.sq", "plain.", "packed"}


def test_what_packs_by_itself_is_packed_once(flame: Flame, trace: Path) -> None:
    for name in ("a.pb", "a.pb.gz", "a.pb.zst"):
        assert flame("export", trace, "-f", "pprof", "-o", name).code == 0
        assert flame("info", name).code == 0
        assert not gzip.decompress(Path(name).read_bytes()).startswith(GZIP)
    assert flame("diff", trace, "--keep-base", "base.json.gz").code == 0
    assert json.loads(gzip.decompress(Path("base.json.gz").read_bytes()))


def test_chrome_is_packed_by_default_and_text_for_a_pipe(flame: Flame, trace: Path) -> None:
    assert flame("export", trace, "-f", "chrome").code == 0
    piped = flame("export", trace, "-f", "chrome", "-o", "-")
    packed = Path("run.chrome.json.gz").read_bytes()
    assert json.loads(piped.out) == json.loads(gzip.decompress(packed))


@pytest.mark.parametrize("command", ["export -f svg", "top", "report", "diff"])
def test_a_folder_that_is_not_there_is_told_before_anything_is_read(
    command: str, flame: Flame, folder: Path
) -> None:
    """The traces are not there either, which would be told next."""
    told = flame(*command.split(), "gone.sqlite", "gone.json", "-o", "nowhere/x.json")
    assert told.code == 3
    said = "nowhere/x.json: cannot be written: there is no folder nowhere"
    assert told.complaint() == said


@pytest.mark.parametrize("command", ["export -f svg", "top", "report", "diff run.sqlite"])
@pytest.mark.parametrize("ending", [".zst", ".xz", ".bz2", ".zip"])
def test_other_packings_are_refused_before_anything_is_read(
    command: str, ending: str, flame: Flame, trace: Path
) -> None:
    told = flame(*command.split(), trace, "-o", f"x{ending}")
    assert told.code == 2
    said = "flame packs by gzip only: end the name with .gz"
    assert told.complaint() == f"-o x{ending}: {said}"
    assert not Path(f"x{ending}").exists()
