"""`flame cache`, `--no-cache` and the setting: large traces are kept, shown and removed."""

from __future__ import annotations

import gzip
import json
import os
from argparse import Namespace
from pathlib import Path

import pytest

from flame.cli import reopening
from flame.core.loading import file as loading
from flame.core.reopening import profile_cache
from tests.cli.conftest import Flame
from tests.core.reopening.conftest import any_size, written
from tests.support.file_server import serving


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache, in which traces of any size are kept."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(profile_cache, "ProfileCache", any_size)
    monkeypatch.setattr(reopening, "_SMALLEST", 0)
    return tmp_path / "cache" / "flame"


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return written(tmp_path / "trace.sqlite")


def kept(home: Path) -> list[str]:
    return [path.suffix for path in home.rglob("*") if path.is_file()]


COMMANDS = (("view", "--print"), ("export", "-f", "folded", "-o", "-"), ("info",))


@pytest.mark.parametrize("words", COMMANDS)
def test_the_second_time_says_the_same_and_does_not_load(
    words: tuple[str, ...],
    home: Path,
    trace: Path,
    flame: Flame,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = flame(*words, trace)
    assert kept(home) == [".profile"]
    monkeypatch.setattr(loading, "detect_format", None)  # which every load asks first
    again = flame(*words, trace)
    assert (again.code, again.out, again.err) == (0, first.out, first.err)
    assert flame(*words, "--no-cache", trace).code


@pytest.mark.parametrize("what", [("--metric", "host"), ("--arrange", "nested")])
@pytest.mark.parametrize("words", COMMANDS[:2])
def test_what_only_the_trace_has_is_loaded_and_kept_for_the_rest(
    what: tuple[str, ...],
    words: tuple[str, ...],
    home: Path,
    trace: Path,
    flame: Flame,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = flame(*words, *what, trace)
    [path] = (home / "profiles").iterdir()
    before = path.stat().st_ino
    assert first.out and flame(*words, *what, trace).out == first.out
    assert path.stat().st_ino == before, "it has been written again"
    monkeypatch.setattr(loading, "detect_format", None)
    assert flame(*words, *what, trace).code == 70
    assert flame(*words, trace).code == 0


def test_of_small_files_nothing_is_looked_for(trace: Path, tmp_path: Path) -> None:
    def wants(*paths: Path) -> bool:
        return reopening.wants_cache(Namespace(no_cache=False, paths=[str(path) for path in paths]))

    assert not wants(trace, tmp_path / "missing", tmp_path)
    large = tmp_path / "recording" / "1.fdump"
    large.parent.mkdir()
    large.write_bytes(bytes(reopening._SMALLEST))
    assert wants(trace, large)
    assert wants(large.parent)


@pytest.mark.parametrize("words", COMMANDS)
def test_no_cache_keeps_nothing(
    words: tuple[str, ...], home: Path, trace: Path, flame: Flame
) -> None:
    assert flame(*words, "--no-cache", trace).code == 0
    assert not home.exists()


def packed(trace: Path) -> Path:
    path = trace.with_name("packed.sqlite.gz")
    path.write_bytes(gzip.compress(trace.read_bytes()))
    return path


@pytest.mark.parametrize("words", COMMANDS)
def test_no_cache_keeps_nothing_of_packed_exports(
    words: tuple[str, ...], home: Path, trace: Path, flame: Flame
) -> None:
    without = flame(*words, "--no-cache", packed(trace))
    assert without.code == 0
    assert not home.exists()
    assert flame(*words, packed(trace)).out == without.out
    assert ".sqlite" in kept(home)


def test_no_cache_keeps_nothing_of_what_is_fetched(home: Path, trace: Path, flame: Flame) -> None:
    with serving() as server:
        server.files["/a.sqlite.gz"] = packed(trace).read_bytes(), {"ETag": '"1"'}
        url = server.url("/a.sqlite.gz")
        assert flame("info", "--no-cache", url).code == 0
        assert not home.exists()
        assert flame("info", url).code == 0
    assert ".fetched" in kept(home)


@pytest.mark.parametrize("text", ["cache = false", "cache = 1", "no TOML"])
@pytest.mark.parametrize("words", COMMANDS)
def test_a_setting_turns_it_off(
    text: str,
    words: tuple[str, ...],
    home: Path,
    trace: Path,
    flame: Flame,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where the file is wrong, of which the app will tell."""
    config = trace.parent / "config.toml"
    config.write_text(text)
    monkeypatch.setenv("FLAME_CONFIG", str(config))
    assert flame(*words, trace).code == 0
    assert flame(*words, packed(trace)).code == 0
    assert not home.exists()


def test_a_setting_turns_it_off_for_ranks_read_elsewhere_too(
    home: Path, trace: Path, flame: Flame, monkeypatch: pytest.MonkeyPatch
) -> None:
    config = trace.parent / "config.toml"
    config.write_text("cache = false")
    monkeypatch.setenv("FLAME_CONFIG", str(config))
    assert flame("ranks", packed(trace), "-o", trace.parent / "run.flamesum").code == 0
    assert not home.exists()


def test_what_matches_nothing_is_kept_for_the_next_try(
    home: Path, trace: Path, flame: Flame
) -> None:
    assert flame("view", "--print", "--kernel", "no such", trace).code == 4
    assert kept(home) == [".profile"]


def test_a_command_line_that_cannot_be_right_keeps_nothing(
    home: Path, trace: Path, flame: Flame
) -> None:
    assert flame("export", "-f", "folded", "-o", trace, trace).code == 2
    assert not home.exists()


# flame cache


def test_without_a_cache_there_is_nothing(home: Path, flame: Flame) -> None:
    shown = flame("cache")
    assert (shown.code, shown.lines) == (0, [shown.lines[0]])
    assert shown.lines[0].startswith(f"{home}: 0 files, 0 B of at most ")
    assert json.loads(flame("cache", "--json").out)["entries"] == []
    assert flame("cache", "clear").out == f"removed 0 files, 0 B, from {home}\n"
    assert not home.exists()


def test_it_says_what_is_kept_of_what(
    home: Path, trace: Path, flame: Flame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "300")
    flame("info", trace)
    (home / "old.sqlite").write_bytes(b"x" * 1500)
    os.utime(home / "old.sqlite", (0, 0))
    lines = flame("cache").lines
    assert lines[0].split() == ["used", "size", "what", "for"]
    assert lines[1].endswith(f" {trace}")
    assert lines[2].endswith("1.50 kB  a report or packed export of Nsight Systems")
    assert lines[3].startswith(f"{home}: 2 files, ")
    flame("view", "--print", "--nvtx-names", "raw", "--nvtx-start-end", trace)
    assert flame("cache").lines[1].endswith(f" {trace} --nvtx-names raw --nvtx-start-end")
    trace.unlink()
    assert flame("cache").lines[2].endswith(f" {trace} (gone)")


def test_it_says_so_in_json(home: Path, trace: Path, flame: Flame) -> None:
    flame("info", trace)
    facts = json.loads(flame("cache", "--json").out)
    [entry] = facts["entries"]
    [path] = (home / "profiles").iterdir()
    size = path.stat().st_size
    assert (facts["path"], facts["bytes"], facts["days"]) == (str(home), size, 30)
    assert entry == {
        "path": str(path),
        "kind": "trace",
        "trace": str(trace),
        "options": {"nvtx_names": "clean", "nvtx_start_end": "False"},
        "bytes": size,
        "used": round(path.stat().st_mtime, 3),
    }


def test_what_is_damaged_is_listed_all_the_same(home: Path, trace: Path, flame: Flame) -> None:
    flame("info", trace)
    [path] = (home / "profiles").iterdir()
    path.write_bytes(b"junk")
    assert flame("cache").lines[1].endswith("a trace")
    assert json.loads(flame("cache", "--json").out)["entries"][0]["trace"] is None


def test_a_long_path_keeps_its_end(
    home: Path, tmp_path: Path, flame: Flame, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ("long" * 20)).mkdir()
    flame("info", written(tmp_path / ("long" * 20) / "trace.sqlite"))
    monkeypatch.setenv("COLUMNS", "60")
    line = flame("cache").lines[1]
    assert len(line) <= 60
    assert line.endswith("long/trace.sqlite")


def test_names_in_it_obey_no_terminal(home: Path, tmp_path: Path, flame: Flame) -> None:
    flame("info", written(tmp_path / "a\x1b[31m.sqlite"))
    assert "\x1b" not in flame("cache").out
    assert "\x1b" not in flame("cache", "--json").out


def test_clear_removes_all_of_it(home: Path, trace: Path, flame: Flame) -> None:
    flame("info", trace)
    digest = "0123456789abcdef" * 2
    (home / f"{digest}-01234567-.{digest}.sqlite").write_bytes(b"x")
    (home / f"{digest}-01234567-89abcdef.{digest}.sass.csv").write_bytes(b"x")
    (home / "sass").mkdir(0o700)
    (home / "sass" / f"{digest}-13_5_37.{digest}.sass").write_bytes(b"x")
    (home / "main.py").write_bytes(b"of somebody who calls a folder flame, too")
    assert flame("cache", "clear").out.startswith("removed 4 files, ")
    assert kept(home) == [".py"]
    assert trace.exists()
    assert flame("info", trace).code == 0


@pytest.mark.parametrize("words", [("cache",), ("cache", "--json"), ("cache", "clear")])
def test_a_cache_that_others_may_write_to_is_refused(
    words: tuple[str, ...], home: Path, trace: Path, flame: Flame
) -> None:
    flame("info", trace)
    home.chmod(0o777)
    refused = flame(*words)
    assert refused.code == 3
    assert "others may write to" in refused.complaint()
    assert kept(home) == [".profile"]


def test_json_is_not_what_clear_prints(home: Path, flame: Flame) -> None:
    assert flame("cache", "clear", "--json").code == 2
    assert flame("cache", "claer").code == 2
