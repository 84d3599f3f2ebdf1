"""Files are told apart as the kernel lists them, and nothing but regular ones is opened."""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from flame.core.mapped_files import (
    IsNotRegularError,
    MappedFile,
    identify_mapped,
    listed_file,
    open_foreign,
    open_regular,
)
from tests.inject.conftest import small_file_system

linux = pytest.mark.skipif(sys.platform != "linux", reason="mappings are listed in /proc")


def identity(path: Path) -> MappedFile:
    descriptor = open_regular(path)
    try:
        return identify_mapped(descriptor)
    finally:
        os.close(descriptor)


@linux
def test_a_file_is_what_is_listed_for_its_mappings(tmp_path: Path) -> None:
    path = tmp_path / "x.fdump"
    path.write_bytes(bytes(1 << 16))
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0):
        lines = Path("/proc/self/maps").read_bytes().splitlines()
        listed = {listed_file(line) for line in lines if line.endswith(bytes(path))}
    assert listed == {identity(path)}


@linux
def test_a_link_to_it_is_the_same_file_by_another_name(tmp_path: Path) -> None:
    (tmp_path / "one").write_text("x")
    (tmp_path / "two").hardlink_to(tmp_path / "one")
    (tmp_path / "three").write_text("x")
    assert identity(tmp_path / "one") == identity(tmp_path / "two") != identity(tmp_path / "three")


@linux
def test_files_with_one_number_on_two_devices(tmp_path: Path) -> None:
    with small_file_system(tmp_path / "a", 1) as a, small_file_system(tmp_path / "b", 1) as b:
        for folder in (a, b):
            (folder / "x").write_text("x")
        assert (a / "x").stat().st_ino == (b / "x").stat().st_ino
        assert identity(a / "x") != identity(b / "x")


@linux
def test_what_has_nothing_in_it_is_not_identified(tmp_path: Path) -> None:
    (tmp_path / "x").touch()
    with pytest.raises(OSError):
        identity(tmp_path / "x")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_no_file_is_not_opened(tmp_path: Path, make: Callable[[Path], None]) -> None:
    make(tmp_path / "x")
    with pytest.raises(IsNotRegularError):
        open_regular(tmp_path / "x")
    with pytest.raises(IsNotRegularError):
        open_regular("/dev/null")


def test_a_link_is_followed_only_if_it_may_be(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("x")
    (tmp_path / "link").symlink_to("x")
    os.close(open_regular(tmp_path / "link"))
    with pytest.raises(IsNotRegularError):
        open_regular(tmp_path / "link", follow_link=False)


def test_a_descriptor_is_for_reading_and_not_inherited(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("text")
    descriptor = open_regular(tmp_path / "x")
    assert os.read(descriptor, 9) == b"text"
    assert not os.get_inheritable(descriptor)
    with pytest.raises(OSError):
        os.write(descriptor, b"x")
    os.close(descriptor)


@linux
def test_of_links_of_others_only_those_of_the_kernel_are_followed(tmp_path: Path) -> None:
    path = tmp_path / "x.fdump"
    path.write_text("x")
    (tmp_path / "link").symlink_to(path)
    with path.open("rb") as file:
        opened = open_foreign(f"/proc/{os.getpid()}/fd/{file.fileno()}")
    assert os.path.samestat(os.fstat(opened), path.stat())
    os.close(opened)
    with pytest.raises(IsNotRegularError):
        open_foreign(tmp_path / "link")
