"""Fetch traces by fsspec, whole, into the cache: never parts of them, nothing that they name."""

from __future__ import annotations

import logging
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from hashlib import sha256
from pathlib import Path
from traceback import clear_frames
from typing import Any

from flame.core.errors import CancelledError, InputError, UsageError
from flame.core.fetching.disk_space import refuse_too_large, room_in
from flame.core.fetching.given_names import PACKAGES, scheme_of, shown_url
from flame.core.files.cache import Cache
from flame.core.files.cache_folder import NoCacheError
from flame.core.lazy_regex import lazy_regex
from flame.core.options import Progress
from flame.core.units import format_bytes

SUFFIX = ".fetched"
MOST = 100_000_000_000
"""Bytes of a trace that is fetched."""

_KIND = "fetched"
_CACHE = Cache(_KIND)
_VERSIONS = (
    *("ETag", "etag", "Content-MD5", "Digest", "md5Hash", "generation"),
    *("Last-Modified", "LastModified", "updated", "mtime", "created"),
)
"""What file systems call that which changes with a file; all that there are count."""

_CONNECTING, _SILENCE = 30.0, 60.0
"""Seconds that a server may take to answer, and to go on."""
_LONGEST_REASON = 200
_IN_ONE_PIECE: dict[str, dict[str, Any]] = {"s3": {"max_concurrency": 1}, "gs": {"headers": {}}}
"""Arguments without which s3fs (from 50 MB on) and gcsfs (from 100 MB on) ask for parts of a file,
several at a time: they may be of different versions of it. Older ones take them, too."""

_ANY_URL = lazy_regex(r"[A-Za-z][A-Za-z0-9+.-]*://[^\s'\"]*")


class _StoppedError(Exception):
    """Stops a download, from the thread that it runs in."""


def fetch(url: str, folder: Path, progress: Progress, *, cache: bool = True) -> Path:
    """Return the file that holds what is at ``url``: of the ``cache``, or else in ``folder``.

    What the cache has of it counts as long as the server tells the same size and version. Raises
    InputError where it cannot be fetched, or is larger than 100 GB or than the disk has room for,
    UsageError where flame does not fetch by that scheme, and what ``progress`` does.
    """
    with _quiet_libraries():
        return _fetch(url, scheme_of(url), folder, progress, cache)


@contextmanager
def _quiet_libraries() -> Iterator[None]:
    """Keep from standard error what libraries log and warn of: a line tells what has failed."""
    before, logging.lastResort = logging.lastResort, logging.NullHandler()
    try:
        with warnings.catch_warnings(action="ignore"):
            try:
                yield
            except BaseException as error:
                # A coroutine that a signal kept from being awaited warns of that once it is freed.
                clear_frames(error.__traceback__)
                raise
    finally:
        logging.lastResort = before


def _fetch(url: str, scheme: str, folder: Path, progress: Progress, cache: bool) -> Path:
    shown = shown_url(url)
    system, place = _open_system(scheme, url)
    progress(f"asking for {shown}", 0, 0)
    info = _guarded(shown, lambda: system.info(place))
    if info.get("type") == "directory":
        raise InputError(f"{shown}: is a folder: name one trace in it")
    size = _size_of(info)
    version = _version_of(info, size)
    get = partial(system.get_file, place, **_IN_ONE_PIECE.get(scheme, {}))
    download = _Download(get, shown, size, progress)
    if version is None or not cache:
        return download.to(folder / "fetched")
    try:
        return _fetch_to_cache(url, version, download, progress)
    except NoCacheError:
        return download.to(folder / "fetched")


def _fetch_to_cache(url: str, version: str, download: _Download, progress: Progress) -> Path:
    of_url = sha256(url.encode("utf-8", "surrogatepass")).hexdigest()[:32]
    key = f"{of_url}-{version}"
    with _CACHE.lock(of_url, lambda: progress("waiting for another flame", 0, 0)):
        found, _ = _CACHE.find(key, SUFFIX)
        if found is not None:
            return found
        for old in _CACHE.folder().glob(f"{of_url}-*{SUFFIX}"):
            _CACHE.drop(old)
        try:
            with _CACHE.workspace() as folder:
                made = download.to(folder / "fetched")
                return _CACHE.keep(made, key, SUFFIX)
        except OSError as error:
            reason = error.strerror or error
            raise InputError(f"{download.shown}: cannot be kept: {reason}") from None


def _size_of(info: Mapping[str, Any]) -> int | None:
    """The bytes that will come; None where that is not known.

    What Google's storage keeps packed comes unpacked, and its size is that of the packed.
    """
    size = info.get("size")
    known = isinstance(size, int) and size >= 0 and not info.get("contentEncoding")
    return size if known else None


def _version_of(info: Mapping[str, Any], size: int | None) -> str | None:
    """Digest what tells this state of a file from others; None where nothing does."""
    known = [f"{name} {info[name]}" for name in _VERSIONS if info.get(name)]
    text = "\n".join([f"size {size}", *known])
    return sha256(text.encode("utf-8", "replace")).hexdigest()[:16] if known else None


def _open_system(scheme: str, url: str) -> tuple[Any, str]:
    """Return the file system of ``url``, and what the file is called there."""
    try:
        from fsspec import get_filesystem_class

        kind = get_filesystem_class(scheme)
        options = {**_web_options(scheme), **kind._get_kwargs_from_urls(url)}
    except ImportError:
        packages = " ".join(PACKAGES[scheme])
        need = f"flame fetches by {scheme}:// with {' and '.join(PACKAGES[scheme])}"
        raise UsageError(f"{shown_url(url)}: {need}: pip install {packages}") from None
    system = _guarded(shown_url(url), lambda: kind(skip_instance_cache=True, **options))
    return system, kind._strip_protocol(url)


def _web_options(scheme: str) -> dict[str, Any]:
    if scheme not in ("http", "https"):
        return {}
    import aiohttp

    timeout = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECTING, sock_read=_SILENCE)
    client: dict[str, Any] = {"timeout": timeout, "trust_env": True}
    if scheme == "https":
        trace = aiohttp.TraceConfig()
        trace.on_request_redirect.append(_refuse_plain_text)
        client["trace_configs"] = [trace]
    return {"client_kwargs": client, "headers": {"Accept-Encoding": "identity"}}


async def _refuse_plain_text(_session: object, _context: object, params: Any) -> None:
    """Refuse to be sent from https to http, by which anybody on the way could read and write."""
    headers = params.response.headers
    target = headers.get("Location") or headers.get("URI") or ""  # as aiohttp takes it
    scheme = _scheme_as_followed(target)
    if scheme == "http":
        raise _StoppedError("the server sends on to http://, which is not safe")
    if scheme not in ("", "https"):  # without one it stays https
        raise _StoppedError("the server sends on to what is not https://")


def _scheme_as_followed(target: str) -> str:
    """Return the scheme that aiohttp will ask ``target`` by: it removes tabs and line breaks."""
    from yarl import URL

    try:
        return URL(target).scheme.lower()
    except ValueError:
        raise _StoppedError("the server sends on to what is no URL") from None


class _Download:
    """Copies one file of a file system by its ``get_file``, within bounds."""

    def __init__(
        self, get: Callable[..., object], shown: str, size: int | None, progress: Progress
    ) -> None:
        self.shown = shown
        self._get = get
        self._size = size
        self._progress = progress
        self._done = 0
        self._most = MOST

    def to(self, target: Path) -> Path:
        """Download to ``target``, and return that."""
        from fsspec.callbacks import Callback

        remedy = "set XDG_CACHE_HOME to a folder on another, or fetch a smaller one"
        refuse_too_large(self.shown, self._size or 0, target.parent, remedy)
        self._most = min(MOST, room_in(target.parent))
        self._check(self._size or 0)
        took = self._took

        class Told(Callback):  # type: ignore[misc]
            def relative_update(self, inc: int = 1) -> None:
                took(inc)

        _guarded(self.shown, lambda: self._get(str(target), callback=Told()))
        size = target.stat().st_size
        if self._size is not None and size != self._size:
            what = f"{format_bytes(size)} of {format_bytes(self._size)} came"
            raise InputError(f"{self.shown}: {what}: try again")
        return target

    def _took(self, amount: int) -> None:
        self._done += amount
        self._check(self._done)
        self._progress(f"fetching {self.shown}", self._done, self._size or 0)

    def _check(self, size: int) -> None:
        if size > self._most:
            raise _StoppedError(f"larger than {format_bytes(self._most)}")


def _guarded(shown: str, work: Any) -> Any:
    """Do ``work`` of another library; InputError of one line for whatever it raises."""
    try:
        return work()
    except (CancelledError, InputError, MemoryError):
        raise
    except Exception as error:
        raise InputError(f"{shown}: cannot be fetched: {_reason(error)}") from None


def _as_shown(match: re.Match[str]) -> str:
    return shown_url(match[0])


def _reason(error: Exception) -> str:
    """Say what is behind ``error``, without the address, which may hold a signature."""
    cause: BaseException = error
    while isinstance(cause, FileNotFoundError) and cause.__cause__ is not None:
        cause = cause.__cause__
    status, message = getattr(cause, "status", None), getattr(cause, "message", None)
    if isinstance(status, int):
        return f"the server answers {status} {message}"[:_LONGEST_REASON].rstrip()
    if isinstance(cause, FileNotFoundError):
        return "there is no such file"
    text = ""
    with suppress(Exception):
        text = _ANY_URL.sub(_as_shown, " ".join(str(cause).split()))[:_LONGEST_REASON]
    return text or type(cause).__name__
