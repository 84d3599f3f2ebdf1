"""Read files that may be packed by gzip, zstd or xz, whatever they are called."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

from flame.core.errors import InputError
from flame.core.lazy_dataclass import dataclass
from flame.core.options import Progress

if TYPE_CHECKING:
    from types import TracebackType

GZIP = b"\x1f\x8b"
_PIECE = 1 << 22
_SHORTEST_STEP, _LONGEST_STEP = 1 << 9, 1 << 13
"""Bytes on disk that are unpacked at a time: of those that are damaged, nothing is had."""

_FREE = 64 << 20
"""Bytes that any file may unpack to."""
_DICTIONARY = 256 << 20
"""Bytes that xz may take to unpack; the most that its presets need is 65 MiB."""

CUT_OFF, DAMAGED = "cut off", "damaged"


class PackedError(Exception):
    """Report that a packed file cannot be unpacked to its end: ``reason`` says why."""

    def __init__(self, packing: str, reason: str) -> None:
        super().__init__(f"not a whole {packing} file ({reason})")
        self.reason = reason


class UnpackedSizeError(PackedError):
    """Report that a file unpacks to so much that it was made to fill the reader's memory."""


class _Steps(Protocol):
    """What unpacks a file on disk a step at a time; nothing is its end."""

    def read1(self, size: int) -> bytes: ...


class _Decompressor(Protocol):
    """What lzma and zstd have in common."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


@dataclass(frozen=True)
class Packing:
    """A way of packing: how files begin, and how they are opened.

    ``most_per_byte``: what a byte on disk may unpack to. Traces are packed to a tenth or a
    fiftieth by gzip, to half of that by the others; a single byte over and over to a thousandth
    by gzip, to a hundred-thousandth by the others.
    """

    name: str
    magic: bytes
    open: Callable[[BinaryIO], _Steps]
    most_per_byte: int


def _open_gzip(file: BinaryIO) -> _Steps:
    import gzip

    return gzip.GzipFile(fileobj=file)


def _open_xz(file: BinaryIO) -> _Steps:
    from lzma import FORMAT_XZ, LZMADecompressor

    return _Frames(file, lambda: LZMADecompressor(FORMAT_XZ, _DICTIONARY))


def _open_zstd(file: BinaryIO) -> _Steps:
    return _Frames(file, _zstd_decompressor())


def _zstd_decompressor() -> Callable[[], _Decompressor]:
    """Return the class of the standard library (from 3.14 on), or of its backport."""
    try:
        from compression.zstd import ZstdDecompressor  # type: ignore[import-not-found]
    except ImportError:
        try:
            from backports.zstd import ZstdDecompressor
        except ImportError:
            need = "packed by zstd, which this Python reads with backports.zstd"
            raise InputError(f"{need}: pip install backports.zstd, or unpack it first") from None
    return cast("Callable[[], _Decompressor]", ZstdDecompressor)


PACKINGS = (
    Packing("gzip", GZIP, _open_gzip, 150),
    Packing("zstd", b"\x28\xb5\x2f\xfd", _open_zstd, 300),
    Packing("xz", b"\xfd7zXZ\0", _open_xz, 300),
)
SUFFIXES = (".gz", ".zst", ".xz")
"""What packed files are usually called."""


def find_packing(head: bytes) -> Packing | None:
    """Return how a file that begins with ``head`` is packed; None where it is not."""
    return next((each for each in PACKINGS if head.startswith(each.magic)), None)


def open_binary(path: Path) -> BinaryIO:
    """Open the file at ``path``, unpacked while it is read where it is packed.

    Reading may raise PackedError (cut off, damaged), and OSError. What unpacks to far more than
    traces do is damaged too: nobody has the memory for it. Raises InputError where what unpacks it
    is not installed.
    """
    file = path.open("rb", 0)
    try:
        packing = find_packing(file.read(8))
        file.seek(0)
        if packing is None:
            return io.BufferedReader(file)
        return cast("BinaryIO", UnpackedFile(_SteppedFile(file), packing))
    except InputError as error:
        file.close()
        raise InputError(f"{path}: {error}") from None
    except BaseException:
        file.close()
        raise


class _SteppedFile(io.BufferedReader):
    """A file that is read in small steps: Python's gzip asks for 8 KiB, from 3.12 on for 128."""

    def read(self, size: int | None = -1) -> bytes:
        """Read a step at most, shorter ones first: there may be no more than a few."""
        step = min(max(self.tell(), _SHORTEST_STEP), _LONGEST_STEP)
        return super().read(step if size is None or size < 0 else min(size, step))


class _Frames:
    """Frames one after another, as xz, zstd and their parallel relatives write them."""

    def __init__(self, file: BinaryIO, new: Callable[[], _Decompressor]) -> None:
        self._file, self._new = file, new
        self._one = new()

    def read1(self, size: int) -> bytes:
        """Unpack at most ``size`` bytes; EOFError where the file ends in a frame."""
        while True:
            packed = b""
            if self._one.eof:
                packed = self._next_frame()
                if not packed:
                    return b""
                self._one = self._new()
            elif self._one.needs_input:
                packed = self._file.read()
                if not packed:
                    raise EOFError
            if data := self._one.decompress(packed, size):
                return data

    def _next_frame(self) -> bytes:
        """Return how the next frame begins, after the zeros with which xz may fill up the last."""
        packed = self._one.unused_data.lstrip(b"\0")
        while not packed:
            read = self._file.read()
            packed = read.lstrip(b"\0")
            if not read:
                break
        return packed


class UnpackedFile:
    """A packed file that is unpacked as it is read, from its beginning on."""

    def __init__(self, file: _SteppedFile, packing: Packing) -> None:
        self.packing = packing
        self.on_disk = file
        self._steps = packing.open(cast("BinaryIO", file))
        self._at = 0

    def __del__(self) -> None:
        self.on_disk.close()

    def __enter__(self) -> UnpackedFile:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file on disk."""
        self.on_disk.close()

    def tell(self) -> int:
        """Return how many bytes have been unpacked."""
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Read ``size`` bytes, all where that is negative, or as many as there still are."""
        pieces, have = list[bytes](), 0
        while size < 0 or have < size:
            piece = self.read1(_PIECE if size < 0 else size - have)
            if not piece:
                break
            pieces.append(piece)
            have += len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def read1(self, size: int = _PIECE) -> bytes:
        """Read what one step gives, at most ``size`` bytes: what precedes damage is not lost."""
        try:
            data = self._steps.read1(size)
        except EOFError:
            raise PackedError(self.packing.name, CUT_OFF) from None
        except MemoryError:
            raise
        except Exception as error:  # of the library that unpacks; each has its own
            if isinstance(error, OSError) and error.errno is not None:
                raise
            raise PackedError(self.packing.name, DAMAGED) from None
        self._at += len(data)
        most = self.packing.most_per_byte
        if self._at > _FREE + most * self.on_disk.tell():
            reason = f"unpacks to more than {most} times its size"
            raise UnpackedSizeError(self.packing.name, reason)
        return data


def read_whole(path: Path, progress: Progress) -> bytes:
    """Read all of the file at ``path``, with progress in bytes on disk; raises as `open_binary`."""
    pieces = []
    size = path.stat().st_size
    with open_binary(path) as file:
        while piece := file.read(_PIECE):
            pieces.append(piece)
            progress("reading", raw_position(file), size)
    return b"".join(pieces)


def raw_position(file: BinaryIO) -> int:
    """Return how far the file on disk has been read, in its own bytes: for progress."""
    return int(getattr(file, "on_disk", file).tell())
