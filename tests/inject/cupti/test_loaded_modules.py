"""Modules that programs load are told, and saved as cubins where PC samples need them."""

from __future__ import annotations

from pathlib import Path

from tests.inject.cupti.cupti_recorded import Record
from tests.support.writers.fdumprecords import text


def test_modules_are_told_and_not_saved_without_sampling(record: Record) -> None:
    recorded = record("""
context()
kernel("one"); kernel("one"); kernel("another")
""")
    of = recorded.of
    first, again, another = of["module"]
    assert first["crc"] == again["crc"] != another["crc"] and first["crc"]
    assert first["hash"] == again["hash"] != another["hash"] and first["hash"]
    assert first["size"] == len("flame-fake 1\nkernel one 1000 ")
    assert not of["module"]["path"].any()
    assert not (recorded.path.parent / "cubins").exists()


def test_unloaded_modules_are_told(record: Record) -> None:
    of = record("""
context()
first, second = module("kernel one 1"), module("kernel two 1")
check(cuda.cuModuleUnload(first))
""").of
    [ended] = of["module_end"]
    first, second = of["module"]
    assert (ended["module"], ended["context"]) == (first["module"], first["context"])
    assert first["module"] != second["module"] and first["context"]
    assert first["time"] < second["time"] < ended["time"]


def test_modules_are_saved_once_for_sampling(record: Record) -> None:
    recorded = record(
        """
context()
kernel("one"); kernel("one"); kernel("another")
""",
        FLAME_PC="serialized",
    )
    of = recorded.of
    paths = [text(of, int(row["path"])) for row in of["module"]]
    expected = [f"cubins/{row['crc']:016x}-{row['hash']:016x}.cubin" for row in of["module"]]
    assert paths == expected
    saved = sorted((recorded.path.parent / "cubins").iterdir())
    assert [path.name for path in saved] == sorted({Path(path).name for path in paths})
    assert {path.stat().st_mode & 0o777 for path in saved} == {0o600}
    content = (recorded.path.parent / paths[0]).read_bytes()
    assert content == b"flame-fake 1\nkernel one 1000 "


def test_cubins_are_not_written_through_a_link(record: Record, tmp_path: Path) -> None:
    elsewhere, folder = tmp_path / "elsewhere", tmp_path / "dumps"
    for made in (elsewhere, folder):
        made.mkdir(mode=0o700)
    (folder / "cubins").symlink_to(elsewhere)
    recorded = record("context()\nkernel('one')", FLAME_PC="serialized")
    assert not list(elsewhere.iterdir())
    assert not recorded.of["module"]["path"].any()
    assert any("could not be saved" in said for said in recorded.meta["note"])
