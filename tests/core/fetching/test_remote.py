"""Traces that are elsewhere: fetched whole, once, within bounds, and nothing besides."""

from __future__ import annotations

import gc
import io
import logging
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from flame.core.errors import CancelledError, InputError, UsageError
from flame.core.fetching import remote
from flame.core.fetching.given_names import name_in, scheme_of, shown_name, shown_url
from flame.core.fetching.remote import fetch
from flame.core.files.bounds import cache_entries
from flame.core.options import silent
from tests.support.file_server import FileServer, serving

TRACE = b"main;work 12\nmain 3\n"


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def server() -> Iterator[FileServer]:
    with serving() as one:
        yield one


def refusal(url: str, folder: Path) -> str:
    with pytest.raises(InputError) as raised:
        fetch(url, folder, silent)
    assert "\n" not in str(raised.value)
    return str(raised.value)


def test_it_is_fetched_whole_and_once(server: FileServer, tmp_path: Path) -> None:
    server.files["/a.folded"] = TRACE, {"ETag": '"1"'}
    url = server.url("/a.folded")
    first = fetch(url, tmp_path, silent)
    assert first.read_bytes() == TRACE
    assert fetch(url, tmp_path, silent) == first
    assert server.asked == ["HEAD /a.folded", "GET /a.folded", "HEAD /a.folded"]
    assert not any("Range" in headers for headers in server.headers)
    assert [entry.path.stat().st_mode & 0o777 for entry in cache_entries()] == [0o600]


@pytest.mark.parametrize("header", ["ETag", "Last-Modified"])
def test_another_version_is_fetched_in_its_place(
    header: str, server: FileServer, tmp_path: Path
) -> None:
    url = server.url("/a")
    server.files["/a"] = TRACE, {header: "1"}
    fetch(url, tmp_path, silent)
    server.files["/a"] = TRACE[::-1], {header: "2"}
    assert fetch(url, tmp_path, silent).read_bytes() == TRACE[::-1]
    assert len(cache_entries()) == 1


def test_what_has_no_version_is_not_kept(server: FileServer, tmp_path: Path) -> None:
    server.files["/a"] = TRACE, {}
    assert fetch(server.url("/a"), tmp_path, silent).read_bytes() == TRACE
    assert cache_entries() == []


def test_progress_is_told_and_may_stop_it(server: FileServer, tmp_path: Path) -> None:
    server.files["/a"] = TRACE, {"ETag": "1"}
    url, told = server.url("/a?key=secret"), list[tuple[str, int, int]]()
    server.files["/a?key=secret"] = server.files["/a"]
    fetch(url, tmp_path, lambda *said: told.append(said))
    shown = server.url("/a")
    assert (f"fetching {shown}", len(TRACE), len(TRACE)) in told
    assert "secret" not in str(told)

    def stop(stage: str, done: int, expected: int) -> None:
        raise CancelledError("stopped")

    with pytest.raises(CancelledError):
        fetch(url, tmp_path, stop)


@pytest.mark.parametrize(
    ("headers", "says"),
    [
        ({"status": "404"}, "the server answers 404 Not Found"),
        ({"status": "403"}, "the server answers 403 Forbidden"),
        ({"Content-Length": "9999"}, "cannot be fetched: "),
        ({"Content-Length": "200000000000"}, "cannot be fetched: larger than"),
    ],
)
def test_what_fails_is_told_in_one_line_and_nothing_is_left(
    headers: dict[str, str], says: str, server: FileServer, tmp_path: Path
) -> None:
    server.files["/a?sig=secret"] = TRACE, {"ETag": "1", **headers}
    said = refusal(server.url("/a?sig=secret"), tmp_path)
    assert said.startswith(server.url("/a: "))
    assert says in said or "too large" in said
    assert "secret" not in said
    assert cache_entries() == []


def test_a_stream_without_a_length_is_bounded(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "MOST", 1_000_000)
    server.files["/a"] = b"x" * 3_000_000, {"ETag": "1", "Content-Length": ""}
    assert refusal(server.url("/a"), tmp_path).endswith("cannot be fetched: larger than 1.00 MB")
    assert cache_entries() == []


def test_a_disk_without_room_is_not_filled(
    server: FileServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.files["/a"] = TRACE, {"ETag": "1"}
    monkeypatch.setattr("flame.core.fetching.disk_space.disk_usage", lambda _: (1_000, 900, 100))
    assert "too large" in refusal(server.url("/a"), tmp_path)


def test_a_server_that_is_not_there(server: FileServer, tmp_path: Path) -> None:
    url = server.url("/a?sig=secret")
    server.server_close()
    said = refusal(url, tmp_path)
    assert "Cannot connect" in said or "refused" in said.lower()
    assert "secret" not in said


async def follow(target: str, header: str = "Location") -> None:
    """Have a server send on from https to ``target``."""

    class Params:
        class response:  # noqa: N801 (as aiohttp's)
            headers: ClassVar[dict[str, str]] = {header: target}

    options = remote._web_options("https")["client_kwargs"]
    (hook,) = options["trace_configs"][0].on_request_redirect
    await hook(None, None, Params())


@pytest.mark.parametrize("header", ["Location", "URI"])
@pytest.mark.parametrize(
    "target",
    ["HTTP://example.invalid/", "ht\ttp://example.invalid/", "\x00h\r\nttp://h/", " http:/h/"],
)
async def test_https_does_not_go_on_to_http(target: str, header: str) -> None:
    with pytest.raises(Exception, match="sends on to http://"):
        await follow(target, header)
    assert "trace_configs" not in remote._web_options("http")["client_kwargs"]


async def test_https_goes_on_to_https_alone() -> None:
    for target in ("https://h/x", "HTTPS://h/x", "/x", "x", "//h/x", ""):
        await follow(target)
    for target in ("file:///etc/passwd", "ftp://h/x", "https://["):
        with pytest.raises(Exception, match="sends on to what is no"):
            await follow(target)


class _Bucket(MemoryFileSystem):  # type: ignore[misc]
    protocol = "s3"
    store: ClassVar[dict[str, Any]] = {}
    pseudo_dirs: ClassVar[list[str]] = [""]

    @classmethod
    def _strip_protocol(cls, path: str) -> str:
        return str(MemoryFileSystem._strip_protocol(path.removeprefix("s3://")))


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> _Bucket:
    fsspec.register_implementation("s3", _Bucket, clobber=True)
    return _Bucket()


def test_objects_of_a_bucket(bucket: _Bucket, tmp_path: Path) -> None:
    bucket.pipe("/traces/a.folded", TRACE)
    found = fetch("s3://traces/a.folded", tmp_path, silent)
    assert found.read_bytes() == TRACE
    assert fetch("s3://traces/a.folded", tmp_path, silent) == found
    assert "is a folder: name one trace in it" in refusal("s3://traces", tmp_path)
    assert "there is no such file" in refusal("s3://traces/none", tmp_path)


def test_what_a_bucket_unpacks_as_it_sends_has_no_known_size(
    bucket: _Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket.pipe("/traces/a.folded", TRACE)
    told = {"size": 5, "type": "file", "contentEncoding": "gzip", "etag": "1"}
    monkeypatch.setattr(_Bucket, "info", lambda self, path: told)
    assert fetch("s3://traces/a.folded", tmp_path, silent).read_bytes() == TRACE


@pytest.mark.parametrize("url", ["ftp://h/a", "file:///etc/passwd", "memory://a", "zip::s3://b/a"])
def test_other_schemes_are_refused(url: str) -> None:
    with pytest.raises(UsageError, match="flame fetches by https://, http://, s3://, gs://"):
        scheme_of(url)


@pytest.mark.parametrize("url", ["https://", "s3:///", "gs://me@?key=1"])
def test_what_names_no_file_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="names no file"):
        scheme_of(url)


def test_what_libraries_log_and_warn_of_is_not_printed(
    bucket: _Bucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does it become an error, as it does in tests."""

    def info(self: object, path: str) -> None:
        logging.getLogger("gcsfs").error("out of retries")
        warnings.warn("no quota project", stacklevel=1)
        raise OSError("the server is gone")

    told, printed = logging.lastResort, io.StringIO()
    assert isinstance(told, logging.StreamHandler)
    monkeypatch.setattr(sys, "stderr", printed)
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    monkeypatch.setattr(_Bucket, "info", info)
    assert refusal("s3://traces/a", tmp_path).endswith("cannot be fetched: the server is gone")
    assert printed.getvalue() == ""
    assert logging.lastResort is told


def test_what_a_signal_keeps_from_being_awaited_is_not_warned_of(
    server: FileServer, tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    async def download() -> None:
        pass

    def interrupt(*_: object) -> None:
        _coroutine = download()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fetch(server.url("/a"), tmp_path, interrupt)
    gc.collect()
    assert not recwarn.list


@pytest.mark.parametrize(
    ("scheme", "packages"), [("https", "fsspec aiohttp"), ("gs", "fsspec gcsfs")]
)
def test_without_the_packages_they_are_named(
    scheme: str, packages: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "fsspec", None)
    with pytest.raises(UsageError) as raised:
        fetch(f"{scheme}://place/a", tmp_path, silent)
    assert str(raised.value).endswith(f": pip install {packages}")


@pytest.mark.parametrize(
    ("url", "name", "shown"),
    [
        ("https://me:pw@h/x/a%20b.json.gz?sig=1#x", "a b.json.gz", "https://h/x/a%20b.json.gz"),
        ("https://h", "trace", "https://h"),
        ("https://h/..", "trace", "https://h/.."),
        ("s3://b/run/%2Fetc%2Fx", "_etc_x", "s3://b/run/%2Fetc%2Fx"),
        ("s3://b/run@2/a.json?versionId=1@2", "a.json", "s3://b/run@2/a.json"),
        ("https://h:8080/x/a.json?sig=1#x", "a.json", "https://h:8080/x/a.json"),
        ("https://h/" + "n" * 400 + ".json", "n" * 95 + ".json", None),
    ],
)
def test_names(url: str, name: str, shown: str | None) -> None:
    assert name_in(url) == name
    assert shown is None or shown_url(url) == shown_name(url) == shown


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://us:s3c/ret@h/x", "http://h/x"),
        ("http://us:1/s3c@ret@h/x?sig=s3c", "http://h/x"),
        ("http://us:s3c?ret@h/x", "http://…"),
        ("http://us:s3c#ret@h/x", "http://…"),
        ("http://us:pw@h/x?mail=s3c@ret", "http://…"),
    ],
)
def test_passwords_that_are_not_encoded_are_not_shown(url: str, shown: str) -> None:
    assert shown_url(url) == shown_name(url) == shown


@pytest.mark.parametrize("mark", "/?#")
def test_a_url_whose_password_is_not_encoded_is_refused_without_it(
    mark: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="in a password write / as %2F") as raised:
        fetch(f"http://us:s3c{mark}ret@h/x", tmp_path, silent)
    assert "s3c" not in str(raised.value) and "ret" not in str(raised.value)


@pytest.mark.usefixtures("bucket")
def test_what_libraries_say_of_a_url_is_without_what_is_secret_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def info(self: object, path: str) -> None:
        raise ValueError("no: 'https://us:s3cret@h/x?sig=s3cret'")

    monkeypatch.setattr(_Bucket, "info", info)
    assert refusal("s3://traces/a", tmp_path).endswith("cannot be fetched: no: 'https://h/x'")
