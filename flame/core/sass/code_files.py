"""Read and write files of instructions: beside a cubin, or in the cache.

A JSON object: ``format`` is ``flame-sass``, ``version`` 1, ``disassembler`` nvdisasm's version.
``functions`` has an object for each: its ``name``, as the cubin has it, and for every instruction
one entry in each of ``offset`` (bytes from the first one, ascending), ``text``, ``file`` (the place
of the source file in ``files``, -1 where it is not known) and ``line`` (0 where it is not known).
"""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from io import BufferedReader
from itertools import pairwise
from typing import Annotated

import msgspec
import numpy as np

from flame.core.files.atomic import written_whole
from flame.core.mapped_files import open_regular
from flame.core.model.pc_samples import LONGEST_TEXT, Code

_FORMAT, _VERSION = "flame-sass", 1
_LARGEST = 1 << 26
"""Bytes: a million instructions."""

_Offset = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
_Place = Annotated[int, msgspec.Meta(ge=-1, lt=1 << 31)]
_Line = Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)]


class _Function(msgspec.Struct):
    name: str
    files: list[str]
    offset: list[_Offset]
    text: list[str]
    file: list[_Place]
    line: list[_Line]


class _File(msgspec.Struct):
    format: str
    version: int
    disassembler: str
    functions: list[_Function]


def read_codes(folder: int, name: str) -> dict[str, Code]:
    """Read the code of each function in the file ``name`` in a folder that is open as ``folder``.

    Nothing where there is none, or it is no such file: then the cubin tells.
    """
    try:
        with open_bounded(folder, name, _LARGEST) as file:
            return decode_codes(file.read())
    except OSError:
        return {}


def decode_codes(data: bytes) -> dict[str, Code]:
    """Read the code of each function from what a file holds; nothing where that is none."""
    try:
        kept = msgspec.json.decode(data, type=_File)
    except (ValueError, RecursionError):
        return {}
    if (kept.format, kept.version) != (_FORMAT, _VERSION):
        return {}
    return {
        function.name: _build_code(function) for function in kept.functions if _is_sound(function)
    }


def write_codes(folder: int, name: str, disassembler: str, codes: Mapping[str, Code]) -> None:
    """Write a file of instructions; it appears whole or not at all. Raises OSError."""
    data = encode_codes(disassembler, codes)
    with written_whole(name, folder) as file:
        file.write(data)


def encode_codes(disassembler: str, codes: Mapping[str, Code]) -> bytes:
    """Return what a file of instructions holds; OSError where that is too much to be kept."""
    functions = [
        _Function(
            key, list(code.files), code.offset.tolist(), list(code.text), *_files_and_lines(code)
        )
        for key, code in codes.items()
    ]
    data = msgspec.json.encode(_File(_FORMAT, _VERSION, disassembler, functions))
    if len(data) > _LARGEST:
        raise OSError(errno.EFBIG, "more instructions than are kept")
    return data


def open_bounded(folder: int, name: str, largest: int) -> BufferedReader:
    """Open the file ``name`` in ``folder``; OSError where it is a link, no file, or too large."""
    file = os.fdopen(open_regular(name, follow_link=False, folder=folder), "rb")
    if os.fstat(file.fileno()).st_size <= largest:
        return file
    file.close()
    raise OSError(errno.EFBIG, "too large")


def _files_and_lines(code: Code) -> tuple[list[int], list[int]]:
    return code.file.tolist(), code.line.tolist()


def _is_sound(function: _Function) -> bool:
    size = len(function.offset)
    return (
        len(function.text) == len(function.file) == len(function.line) == size
        and all(before < after for before, after in pairwise(function.offset))
        and max(function.file, default=-1) < len(function.files)
    )


def _build_code(function: _Function) -> Code:
    return Code(
        function.name,
        np.array(function.offset, np.int64),
        tuple(text[:LONGEST_TEXT] for text in function.text),
        np.array(function.file, np.int32),
        np.array(function.line, np.int32),
        tuple(function.files),
    )
