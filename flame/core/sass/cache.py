"""Cache instructions that nvdisasm has printed, by the content of the cubin."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from io import BufferedReader

from flame.core.files.cache import Cache
from flame.core.files.cache_folder import NoCacheError
from flame.core.model.pc_samples import Code
from flame.core.sass.code_files import decode_codes, encode_codes

_CACHE = Cache("sass")
_SUFFIX = ".sass"


class CodeCache:
    """The cached code of the cubin open as ``cubin``, by nvdisasm of this ``version``."""

    def __init__(self, cubin: BufferedReader, version: str) -> None:
        cubin.seek(0)
        content = hashlib.file_digest(cubin, "sha256").hexdigest()
        self._version = version
        self._key = f"{content[:32]}-{version.replace('.', '_')}"

    def read(self) -> dict[str, Code]:
        """Read the code of functions by name; nothing where none is kept."""
        with suppress(OSError, NoCacheError):
            found, _ = _CACHE.find(f"{self._key}.", _SUFFIX)
            return decode_codes(found.read_bytes()) if found else {}
        return {}

    def write(self, codes: Mapping[str, Code]) -> None:
        """Write ``codes``; NoCacheError where there is no place for them, or none to be trusted."""
        with suppress(OSError), _CACHE.workspace() as folder:
            made = folder / "codes"
            made.write_bytes(encode_codes(self._version, codes))
            _CACHE.keep(made, self._key, _SUFFIX)

    @contextmanager
    def lock(self, tick: Callable[[], None]) -> Iterator[None]:
        """Let other processes that want code of this cubin wait; they call their ``tick``."""
        with ExitStack() as stack:
            with suppress(NoCacheError):
                stack.enter_context(_CACHE.lock(self._key, tick))
            yield
