"""Work in a dump that grows waits for its call, but not for ever."""

from __future__ import annotations

import pytest

from tests.core.live.decode.growing_dumps import Film
from tests.core.live.decode.viewed_dumps import assert_work_follows_its_calls, viewed
from tests.support.writers.fdumpfile import API

SECOND = 10**9


def test_work_waits_until_its_call_has_returned(film: Film) -> None:
    film.launch(0, 1, 1, api=307)
    film.kernel("a", 2, 3, 1, tid=100)
    film.kernel("b", 4, 5, 2, tid=100)
    with viewed(film.data()) as viewer:
        assert viewer.read().work.correlation.tolist() == [1]
        film.launch(3, 9, 2, api=307)
        viewer.write(film.data())
        batch = viewer.read()
        assert (batch.work.correlation.tolist(), batch.calls.correlation.tolist()) == ([2], [2])


def test_work_whose_call_was_a_part_of_another_waits_for_a_later_one(film: Film) -> None:
    film.launch(0, 1, 1, api=307)
    film.kernel("nested", 4, 5, 3, tid=100)
    with viewed(film.data()) as viewer:
        assert not len(viewer.read().work)
        film.launch(2, 6, 2, api=307)
        viewer.write(film.data())
        assert not len(viewer.read().work)
        film.launch(7, 8, 4, api=307)
        viewer.write(film.data())
        assert viewer.read().work.correlation.tolist() == [3]


def test_correlation_ids_begin_anew(film: Film) -> None:
    film.launch(0, 1, (1 << 32) - 1, api=307)
    film.kernel("k", 4, 5, 2, tid=100)
    with viewed(film.data()) as viewer:
        assert not len(viewer.read().work)
        film.launch(2, 6, 2, api=307)
        viewer.write(film.data())
        assert viewer.read().work.correlation.tolist() == [2]


def test_any_correlation_id_may_be_the_first(film: Film) -> None:
    film.launch(0, 1, 3 << 30, api=307)
    film.kernel("a", 2, 3, 3 << 30, tid=100)
    film.kernel("b", 4, 5, (3 << 30) + 1, tid=100)
    with viewed(film.data()) as viewer:
        assert viewer.read().work.correlation.tolist() == [3 << 30]


@pytest.mark.parametrize("ended", [True, False])
def test_work_that_the_library_saw_no_call_of_waits_for_none(film: Film, ended: bool) -> None:
    film.ended = ended
    film.kernel("unseen", 0, 5, 7)
    film.kernel("without", 5, 8, 0, tid=100)
    film.kernel("waits", 8, 9, 9, tid=100)
    with viewed(film.data()) as viewer:
        assert viewer.read().work.correlation.tolist() == ([7, 0, 9] if ended else [7, 0])
        assert viewer.read(last=True).work.correlation.tolist() == ([] if ended else [9])


def test_work_does_not_wait_for_ever_and_what_was_too_late_is_said(film: Film) -> None:
    film.kernel("k", 0, 5, 7, tid=100)
    film.launch(3 * SECOND, 3 * SECOND + 1, 3, tid=101, api=307)
    with viewed(film.data()) as viewer:
        assert viewer.read().work.correlation.tolist() == [7]
        assert viewer.dump.warnings() == ()
        film.launch(-5, 4 * SECOND, 7, api=307)
        viewer.write(film.data())
        viewer.read()
        assert viewer.dump.warnings() == (
            "1 GPU activity is shown without its call, which took very long",
        )


def test_what_is_read_late_has_not_waited_for_long() -> None:
    film = Film(rows=1)
    film.ended, film.end = False, 9 * SECOND
    film.name(API, 307, "cuLaunchKernel")
    film.launch(0, 1, 1, api=307)
    film.kernel("k", 2, 3, 2, tid=100)
    film.kernel("other", SECOND, SECOND + 1, 0)
    film.launch(1, SECOND + 2, 2, api=307)
    film.launch(9 * SECOND, 9 * SECOND + 1, 3, tid=101, api=307)
    with viewed(film.data()) as viewer:
        viewer.read(most=1)
        assert_work_follows_its_calls(viewer.seen, viewer.path)
        assert viewer.dump.warnings() == ()
