"""What is kept of a dump takes its place, as long as the dump is what it was."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from flame.core.errors import InputError
from flame.core.loading.file import load_file
from flame.core.options import LoadOptions, silent
from flame.core.rank_summary import summary_file
from flame.core.rank_summary.packed_columns import pack_column, unpack_column
from flame.core.rank_summary.summary import RankSummary
from flame.core.rank_summary.summary_check import holds_together
from flame.core.rank_summary.summary_file import pack_summary, unpack_summary
from flame.core.rank_summary.summary_head import HEAD, origin_in, seal
from flame.core.ranks import rank_file
from flame.core.ranks.communication.arrivals import COLUMNS
from flame.core.ranks.communication.rank_groups import RankGroups
from flame.core.ranks.inputs import list_paths, read_inputs
from flame.core.ranks.job import RankJob, read_part
from flame.core.ranks.rank_file import (
    has_fresh_summary,
    identify_dump,
    pack_part,
    summary_beside,
    unpack_part,
)
from flame.core.ranks.summarise import USUAL, RankOptions, RankPart, summarise
from tests.support.ranks.rank_traces import write_ranks
from tests.support.tiers import deep_except

SIGN = bytes(range(16))


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write_dumps(ranks: int = 3, **faults: Any) -> list[Path]:
    """Traces of ranks with collectives that are called dumps."""
    paths = write_ranks(Path("run"), ranks, 3, 2, **faults).paths
    return [path.rename(path.with_suffix(".fdump")) for path in paths]


def keep(dump: Path) -> Path:
    """Write the summary of a dump beside it, as flame record does."""
    part = summarise(load_file(dump, LoadOptions(), silent), dump)
    summary_beside(dump).write_bytes(pack_part(part, identify_dump(dump)))
    return summary_beside(dump)


class _Here:
    """Reads files in this process."""

    def __init__(self) -> None:
        self.parts: list[RankPart] = []

    def read(
        self, files: Sequence[Any], options: RankOptions, meter: object
    ) -> Iterator[Sequence[RankSummary]]:
        for file in files:
            path = Path(file.path)
            self.parts.append(read_part(path, LoadOptions(), silent, name=file.path, how=options))
            yield [self.parts[-1].summary]

    def unfinished(self) -> Sequence[RankSummary]:
        return ()

    def second_pass(self, work: Callable[..., Any], table: Any) -> Sequence[Any]:
        return [work(one, table) for part in self.parts for one in part.arrivals]

    def close(self) -> None: ...


class _Meter:
    def note(self, file: object, share: float) -> None: ...
    def end(self, file: object) -> None: ...
    def say(self, text: str) -> None: ...
    def tell(self) -> None: ...


def summed_up(*words: str, options: RankOptions = USUAL) -> RankSummary:
    """What the command makes of ``words``."""
    inputs = read_inputs(list_paths(words), options.iteration)
    return RankJob(_Here(), inputs.summaries, lambda _: None).run(inputs.files, _Meter(), options)


@pytest.fixture
def no_loads(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Lets no trace be read from now on."""

    def refuse(path: Path, *_: object) -> None:
        raise InputError(f"{path}: was read")

    return lambda: monkeypatch.setattr("flame.core.ranks.job.load_file", refuse)


@pytest.mark.deep
@pytest.mark.parametrize("options", [USUAL, RankOptions(RankGroups.parse("tp=3"))])
def test_kept_summaries_make_what_their_dumps_make(
    options: RankOptions, no_loads: Callable[[], None]
) -> None:
    dumps = write_dumps(straggler=1)
    expected = summed_up("run", options=options)
    assert expected.waits is not None and expected.waits.by_group
    for dump in dumps:
        keep(dump)
    no_loads()
    data = pack_summary(expected)
    for words in (["run"], ["run/*"], ["run/*.flamesum"], ["run/*.flamesum", "run"]):
        found = summed_up(*words, options=options)
        assert not found.lost
        assert pack_summary(found) == data
    for dump in dumps:
        dump.unlink()
    assert pack_summary(summed_up("run", options=options)) == data


@pytest.mark.deep
@pytest.mark.parametrize(
    "change",
    [
        lambda dump: dump.write_bytes(dump.read_bytes() + b"\0"),
        lambda dump: dump.write_bytes(b"x" + dump.read_bytes()[1:]),
        lambda dump: dump.write_bytes(dump.read_bytes()[:-1]),
    ],
)
def test_a_dump_that_has_changed_is_read(
    change: Callable[[Path], object], no_loads: Callable[[], None]
) -> None:
    dump, _ = write_dumps(2)
    assert has_fresh_summary(dump) is None
    keep(dump)
    assert has_fresh_summary(dump)
    change(dump)
    assert has_fresh_summary(dump) is False
    inputs = read_inputs(list_paths(["run"]))
    assert [file.size for file in inputs.files] == [
        Path(file.path).stat().st_size for file in inputs.files
    ]
    no_loads()
    assert "was read" in str(read_part(dump, LoadOptions(), silent, name="a").summary.lost)


@pytest.mark.deep
def test_another_version_of_flame_reads_the_dump(monkeypatch: pytest.MonkeyPatch) -> None:
    dump, _ = write_dumps(2)
    keep(dump)
    monkeypatch.setattr(rank_file, "__version__", "99")
    assert has_fresh_summary(dump) is False


@pytest.mark.deep
def test_a_copy_is_as_fresh_and_has_its_own_paths(no_loads: Callable[[], None]) -> None:
    dump, _ = write_dumps(2)
    kept = keep(dump)
    Path("copy").mkdir()
    for path in (dump, kept):
        (Path("copy") / path.name).write_bytes(path.read_bytes())
    no_loads()
    (info,) = summed_up("copy").info
    assert info.path == f"copy/{dump.name}"
    (info,) = unpack_summary(kept.read_bytes(), "elsewhere/x.flamesum").info
    assert info.path == f"elsewhere/{dump.name}"


@pytest.mark.deep
def test_a_damaged_summary_beside_a_dump_costs_nothing() -> None:
    dump, _ = write_dumps(2)
    kept = keep(dump)
    data = kept.read_bytes()
    kept.write_bytes(data[:-3])
    found = read_part(dump, LoadOptions(), silent, name="a")
    assert not found.summary.lost and len(found.summary) == 1
    dump.unlink()
    (lost,) = read_part(kept, LoadOptions(), silent, name=str(kept)).summary.lost
    assert lost.reason == "the summary is damaged or cut off: make it again"


@pytest.mark.deep
def test_other_iterations_are_read_from_the_dump(no_loads: Callable[[], None]) -> None:
    for dump in write_dumps(2):
        keep(dump)
    options = RankOptions(iteration="layers.0")
    inputs = read_inputs(list_paths(["run"]), options.iteration)
    assert not inputs.notes
    found = summed_up("run", options=options)
    assert {one.iteration for one in found.info} == {"layers.0"}
    no_loads()
    assert len(summed_up("run", options=options).lost) == 2


def one_part() -> RankPart:
    dump, _ = write_dumps(2)
    return summarise(load_file(dump, LoadOptions(), silent), dump)


@pytest.mark.deep
def test_a_part_comes_back_as_it_was() -> None:
    part = one_part()
    again = unpack_part(data := pack_part(part, SIGN), "run/rank0000.flamesum")
    assert pack_summary(again.summary) == pack_summary(part.summary)
    assert pack_part(again, SIGN) == data
    for name, column in zip(COLUMNS, part.arrivals[0][2:13], strict=True):
        if name != "group":
            assert getattr(again.arrivals[0], name).tolist() == column.tolist()
    assert origin_in(data) == SIGN


@pytest.mark.deep
@pytest.mark.parametrize("seed", deep_except([], range(3)))
def test_mutated_numbers_are_refused_or_hold_together(seed: int) -> None:
    data = pack_part(one_part(), SIGN)
    packed = summary_file._DECODER.decode(data[HEAD:])
    rng, refused = random.Random(seed), 0
    ours = [name for name in packed.columns if name.startswith("a_")]
    for _ in range(300):
        columns = dict(packed.columns)
        name = rng.choice(ours)
        column = unpack_column(columns[name], columns[name].rows).copy()
        match rng.randrange(3):
            case 0:
                column = column[:-1]
            case 1:
                column = np.append(column, 1)
            case _:
                column[rng.randrange(len(column))] += rng.choice([-1, 1, 7, -(1 << 40), 1 << 61])
        columns[name] = pack_column(column)
        body = msgspec.msgpack.encode(msgspec.structs.replace(packed, columns=columns))
        try:
            part = unpack_part(seal(body, SIGN), "x")
        except InputError as error:
            assert str(error) == "x: the summary does not hold together: make it again"
            refused += 1
            continue
        Path("one.flamesum").write_bytes(seal(body, SIGN))
        assert holds_together(summed_up("one.flamesum")) and len(part.summary) == 1
    assert refused > 150
