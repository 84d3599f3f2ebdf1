"""Speedscope files read as a stream say what they do when decoded whole, whatever the pieces."""

from __future__ import annotations

import gzip
import itertools
import json
import random
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.errors import InputError
from flame.core.options import silent
from flame.core.readers.shared.file_stream import FileStream
from flame.core.readers.stacks.speedscope_document import SpeedscopeDocument
from flame.core.readers.stacks.speedscope_schema import EventedInput, SpeedscopeInput, decode_file
from tests.support.writers.speedscopefile import document, evented, refusal, sampled

Content = tuple[Any, ...]
LAYOUTS: dict[str, dict[str, Any]] = {
    "spaces": {},
    "lines": {"indent": 1},
    "dense": {"separators": (",", ":")},
}
SAME = np.arange(1 << 20, dtype=np.int32)
PLACE = re.compile(r"\(byte \d+\)")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("speedscope") / "profile.json"


def streamed(path: Path, data: bytes, piece: int) -> Content:
    """What the stream makes of ``data``: all that `whole` says of it."""
    path.write_bytes(data)
    with closing(FileStream(path, silent, "reading", piece)) as stream:
        found = SpeedscopeDocument(stream)
        outline = found.read()
    profiles: list[Content] = []
    told = [np.concatenate(columns.samples) for columns in found.profiles]
    indices, lengths = found.samples.build(SAME)
    texts = np.split(indices, np.cumsum(lengths)[:-1])
    for profile, columns, which in zip(outline.profiles, found.profiles, told, strict=True):
        head = (profile.name, profile.unit, profile.start_value)
        if isinstance(profile, EventedInput):
            rows = [row for piece in columns.events for row in zip(*piece, strict=True)]
            profiles.append((*head, [(int(f), bool(o), float(at)) for f, o, at in rows]))
        else:
            samples = [texts[one].tolist() for one in which.tolist()]
            weights = np.concatenate(columns.weights).tolist()
            profiles.append((*head, samples, [float(weight) for weight in weights]))
    return outline.exporter, outline.shown, found.frames, profiles


def whole(data: bytes) -> Content:
    file: SpeedscopeInput = decode_file(data)
    profiles: list[Content] = []
    for profile in file.profiles:
        head = (profile.name, profile.unit, profile.start_value)
        if isinstance(profile, EventedInput):
            events = [(one.frame, one.type == "O", float(one.at)) for one in profile.events]
            profiles.append((*head, events))
        else:
            samples = json.loads(bytes(profile.samples))
            profiles.append((*head, samples, [float(weight) for weight in profile.weights]))
    return file.exporter, file.shown, file.shared.frames, profiles


names = st.text(max_size=6) | st.sampled_from(['},{"name', "]", "}]", '"', "\\", "[[", '{"a'])
frames = st.lists(
    st.fixed_dictionaries(
        {"name": names},
        optional={"file": st.none() | names, "line": st.integers(-1, 9), "more": st.lists(names)},
    ),
    max_size=6,
)
numbers = st.integers(0, 2**60) | st.floats(0, 1e9)
profiles = st.lists(
    st.builds(
        sampled,
        st.lists(st.lists(st.integers(0, 900), max_size=5), max_size=9),
        st.lists(numbers, max_size=9),
        name=names,
        more=st.none() | st.dictionaries(names, st.lists(names)),
    )
    | st.builds(
        lambda events, **more: evented(*events, **more),
        st.lists(st.tuples(st.sampled_from("OC"), st.integers(0, 900), numbers), max_size=9),
        name=names,
    ),
    max_size=4,
)


@st.composite
def files(draw: st.DrawFn) -> bytes:
    """A file whose keys come in any order, with spaces of any kind."""
    content = json.loads(document(*draw(profiles), frames=draw(frames), exporter="x"))
    shuffle = random.Random(draw(st.integers(0, 99))).shuffle

    def shuffled(value: dict[str, Any]) -> dict[str, Any]:
        items = list(value.items())
        shuffle(items)
        return dict(items)

    content["profiles"] = [shuffled(profile) for profile in content["profiles"]]
    layout = draw(st.sampled_from(list(LAYOUTS)))
    return json.dumps(
        shuffled(content), **LAYOUTS[layout], ensure_ascii=draw(st.booleans())
    ).encode()


@given(files(), st.sampled_from([1, 7, 40, 1 << 20]))
def test_a_stream_says_what_the_whole_file_does(path: Path, data: bytes, piece: int) -> None:
    assert streamed(path, data, piece) == whole(data)


@given(files(), st.sampled_from([3, 60, 1 << 20]), st.data())
def test_a_damaged_file_is_refused_as_when_decoded_whole(
    path: Path, data: bytes, piece: int, draws: st.DataObject
) -> None:
    place = draws.draw(st.integers(0, len(data) - 1))
    sign = draws.draw(st.sampled_from([b"", b"{", b"]", b"[", b",", b'"', b":", b"x", b"-", b"}"]))
    damaged = data[:place] + sign + data[place + draws.draw(st.integers(0, 2)) :]
    try:
        expected = whole(damaged)
    except (InputError, ValueError):  # the latter of samples, which are text until they are used
        with pytest.raises(InputError):
            streamed(path, damaged, piece)
    else:
        try:
            assert streamed(path, damaged, piece) == expected
        except InputError as error:
            assert "samples" in str(error)


@pytest.mark.parametrize("piece", [5, 1 << 20])
@pytest.mark.parametrize(
    "wrong",
    [
        {"weights": [1, "x"]},
        {"weights": [[1, 2], 1]},
        {"weights": [1, None, 3]},
        {"type": "evented", "events": [{"type": "O", "frame": 0}]},
        {"type": "evented", "events": [{"type": "O", "frame": "]", "at": 1}]},
        {"type": "evented", "events": [{"type": "O", "frame": 0, "at": 1}, 7]},
        {"type": "evented", "events": [{"type": "O", "frame": 1 << 63, "at": 1}]},
    ],
)
def test_a_wrong_element_is_refused_with_its_place(
    path: Path, piece: int, wrong: dict[str, Any]
) -> None:
    data = document(sampled([[0]], [1]), {**sampled([], []), **wrong})
    with pytest.raises(InputError) as expected:
        decode_file(data)
    with pytest.raises(InputError) as caught:
        streamed(path, data, piece)
    assert str(caught.value) == str(expected.value)


@pytest.mark.parametrize("piece", [5, 1 << 20])
def test_damage_in_the_outline_is_told_with_its_byte(path: Path, piece: int) -> None:
    data = document(sampled([[0]] * 50, [1] * 50), sampled([[1]], [2], name="second"))
    damaged = data.replace(b'"name": "second"', b'"name"; "second"')
    with pytest.raises(InputError) as expected:
        decode_file(damaged)
    with pytest.raises(InputError) as caught:
        streamed(path, damaged, piece)
    assert PLACE.sub("", str(caught.value)) == PLACE.sub("", str(expected.value))
    [said] = map(int, re.findall(r"byte (\d+)", str(caught.value)))
    assert said == damaged.index(b";")


@pytest.mark.parametrize("sample", ["[1 2]", "[1,]", "[01]", "[,1]"])
def test_samples_that_are_no_json_are_refused(sample: str) -> None:
    data = document(sampled([[0], [3, 3, 3]], [1, 1]))
    said = refusal(data.replace(b"[3, 3, 3]", sample.encode()))
    assert said.startswith("damaged or cut off" if " " in sample else "profiles[0].samples[1]: no")


def test_keys_that_come_twice_count_as_the_last_time(path: Path) -> None:
    data = document(sampled([[0]], [1])).replace(
        b'"weights": [1]', b'"weights": [1, 2], "samples": [[1], [2]], "weights": [5, 6]'
    )
    assert streamed(path, data, 1 << 20) == whole(data)


def test_a_gzipped_file_whose_check_fails_is_refused() -> None:
    data = bytearray(gzip.compress(document(sampled([[0, 1]], [1]))))
    data[-6] ^= 1
    assert refusal(bytes(data)).startswith("not a whole gzip file (damaged)")


def test_what_follows_the_document_is_refused() -> None:
    assert "trailing characters" in refusal(document(sampled([[0]], [1])) + b" x")


def test_every_cut_is_refused(path: Path) -> None:
    data = document(sampled([[0, 1], []], [1, 2]), evented(("O", 0, 1), ("C", 0, 2)))
    for size, piece in itertools.product(range(1, len(data), 19), (3, 1 << 20)):
        with pytest.raises(InputError, match="damaged or cut off"):
            streamed(path, data[:size], piece)
