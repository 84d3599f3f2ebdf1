"""Recordings with cubins, a cache and a counted nvdisasm of their own."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from flame.core.model.pc_samples import Code
from flame.core.options import silent
from flame.core.sass import nvdisasm
from flame.core.sass.disassembly import find_codes, store_codes
from flame.core.sass.module_lives import CubinId, Cubins
from tests.support.paths import SAMPLES

CUBIN = SAMPLES / "llm_kernels.cubin"
GEMM_16, GEMM_32 = (f"_ZN3llm4gemmILi{tile}EEEvPKfS2_Pfi" for tile in (16, 32))
GEMMS = {GEMM_16, GEMM_32}
SOFTMAX = "_ZN3llm7softmaxEPKfPfi"
CRC = 0xFEDCBA9876543210
VERSION = '[ "$1" = --version ] && { echo "Cuda, release 13.5, V13.5.37"; exit; }\n'
Wanted = dict[int, set[str]]


def of_one(wanted: Wanted) -> dict[Cubins, set[str]]:
    """What is wanted of cubins that older dumps know by their checksum alone; 0: not known."""
    return {(CubinId(crc),) if crc else (): names for crc, names in wanted.items()}


class Recording:
    """A folder with cubins, a cache of its own, and an nvdisasm that counts how often it is run."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self._patch = folder / "x.flame", monkeypatch
        self.cubins = self.folder / "cubins"
        self.cubins.mkdir(parents=True)
        self._log = folder / "runs"
        monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))

    def add(self, crc: int = CRC) -> Path:
        return Path(shutil.copy(CUBIN, self.cubins / f"{crc:016x}.cubin"))

    def program(self, text: str) -> Path:
        """Makes a script the nvdisasm that is found."""
        path = self.folder.parent / "program"
        path.write_text(f"#!/bin/sh\n{text}")
        path.chmod(0o700)
        self._patch.setenv(nvdisasm.PATH_VARIABLE, str(path))
        return path

    def real(self) -> None:
        found = nvdisasm.find_disassembler()
        if found is None:
            pytest.skip("nvdisasm is not here")
        log = f'[ "$1" = --version ] || echo "$*" >> {self._log}'
        self.program(f'{log}\nexec {found.path} "$@"\n')

    def runs(self) -> int:
        return len(self._log.read_text().splitlines()) if self._log.exists() else 0

    def codes(self, wanted: Wanted) -> tuple[dict[tuple[int, str], Code], list[str]]:
        codes, warnings = find_codes(self.folder, of_one(wanted), silent)
        return {(cubin.crc, name): code for ((cubin,), name), code in codes.items()}, warnings

    def store(self, wanted: Wanted) -> list[str]:
        return store_codes(self.folder, of_one(wanted), silent)


def plain(codes: dict[tuple[int, str], Code]) -> dict[tuple[int, str], Any]:
    """All that is in ``codes``, to be compared."""
    return {
        key: (one.name, one.text, one.files, *(getattr(one, name).tolist() for name in COLUMNS))
        for key, one in codes.items()
    }


COLUMNS = ("offset", "file", "line")
