"""PC samples of dumps, against a plain count, and what is left out of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flame.core.loading.many import load
from flame.core.model.profile import Profile
from tests.core.readers.fdump.sampled_dumps import (
    CRC,
    GEMM,
    KERNELS,
    LAUNCHED,
    NOT_ISSUED,
    SAMPLES,
    TITLES,
    Launched,
    Sample,
    as_told,
    check,
    counted,
    dump_of,
    found,
    opened,
    record,
    warnings,
)
from tests.support.tiers import examples

# Against a plain count

kernels = st.builds(
    Launched,
    st.sampled_from(KERNELS),
    st.integers(1, 4),
    st.integers(1, 2),
    st.sampled_from([0, 1, 10, 33]),
)
all_samples = st.lists(
    st.builds(
        Sample,
        st.sampled_from([*KERNELS, "called"]),
        st.sampled_from([0, 0x10, 0x18, 0x5000]),
        st.sampled_from([*TITLES, NOT_ISSUED]),
        st.integers(0, 5),
        st.sampled_from([0, 1, 2, 3, 9]),
        st.sampled_from([0, CRC]),
    ),
    max_size=10,
)


def kept(launched: list[Launched], samples: list[Sample]) -> list[Sample]:
    """The samples that are not left out, by the rules."""
    shared = {one.function for one in samples if not one.correlation}
    runs = {(one.kernel, one.correlation) for one in launched}
    own = [one for one in samples if (one.function, one.correlation) in runs]
    launches = {one.function for one in own} - shared
    return [one for one in samples if one.function not in launches or one in own]


def left_out(profile: Profile) -> int:
    """How many samples the warnings say are left out."""
    return sum(int(one.split()[0].replace(",", "")) for one in warnings(profile, "left out"))


@examples(1.5)
@given(st.lists(kernels, max_size=6), all_samples)
def test_every_sample_is_somewhere_or_told(
    tmp_path_factory: pytest.TempPathFactory, launched: list[Launched], samples: list[Sample]
) -> None:
    profile = opened(dump_of(launched, samples), tmp_path_factory.mktemp("dump"))
    whole = sum(one.number for one in counted(samples))
    assert found(profile).total() + left_out(profile) == whole


@examples(1.5)
@given(st.lists(kernels, max_size=6), all_samples)
def test_samples_are_where_a_plain_count_has_them(
    tmp_path_factory: pytest.TempPathFactory, launched: list[Launched], samples: list[Sample]
) -> None:
    launched = [one._replace(correlation=at + 1) for at, one in enumerate(launched)]
    recorded = {one.kernel for one in launched}
    samples = [one for one in counted(samples) if one.function in recorded]
    profile = opened(dump_of(launched, samples), tmp_path_factory.mktemp("dump"))
    mine = kept(launched, samples)
    assert found(profile) == as_told(mine)
    shared = {one.function for one in samples if not one.correlation}
    for row, run in enumerate(launched):
        own = [one for one in mine if one[0] == run.kernel and one.correlation == row + 1]
        if own and run.kernel not in shared:
            values = profile.activities.measures["stalls"]
            assert values[row] == sum(one.number for one in own)


# Damage


def test_impossible_samples_are_counted(tmp_path: Path) -> None:
    dump = dump_of(LAUNCHED, SAMPLES)
    record(dump, Sample(GEMM, 1 << 63, 1, 4))
    record(dump, Sample(GEMM, (1 << 64) - 1, 1, 2))
    record(dump, Sample("", 0, 1, 5))
    record(dump, Sample(GEMM, 0, 1, 6), function=4_000_000_000)
    record(dump, Sample(GEMM, 0x10, 4, (1 << 32) - 1))
    profile = opened(dump, tmp_path)
    assert found(profile) == as_told([*SAMPLES, Sample(GEMM, 0x10, 4, (1 << 32) - 1)])
    [warning] = warnings(profile, "damaged")
    assert warning.startswith("17 PC samples are damaged")


def test_far_apart_places_take_no_room(tmp_path: Path) -> None:
    samples = [Sample(GEMM, (1 << 62) + place, 1, 1, crc=place) for place in range(20)]
    profile = opened(dump_of(LAUNCHED, samples), tmp_path)
    assert profile.sampling is not None
    assert sum(map(len, profile.sampling.codes)) == 20


@pytest.mark.parametrize("path", ["../../etc/passwd", "/etc/passwd", "cubins/../../x", ""])
def test_only_files_of_the_recording_are_opened(path: str, tmp_path: Path) -> None:
    folder = tmp_path / "in" / "x.flame"
    folder.mkdir(parents=True)
    dump = dump_of(LAUNCHED, SAMPLES)
    dump.record("module", crc=CRC, size=100, path=dump.text(path))
    os.mkfifo(tmp_path / "x")  # whoever opened it would wait
    assert found(opened(dump, folder)) == as_told(SAMPLES)


@pytest.mark.deep
def test_any_byte_of_the_samples_may_be_damaged(tmp_path: Path) -> None:
    data = dump_of(LAUNCHED, SAMPLES).data()
    chunks = [at for at in range(1 << 16, len(data), 1 << 16) if data[at + 4] == 15]
    for at in chunks:
        for place in range(at + 64, at + 64 + 3 * 48, 5):
            for value in (b"\xff", b"\0", b"\x80"):
                path = tmp_path / "100-1.fdump"
                path.write_bytes(data[:place] + value + data[place + 1 :])
                profile = load(path)
                if profile.sampling is not None:
                    check(profile)
