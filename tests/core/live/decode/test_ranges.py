"""Ranges of a dump that grows: those that have ended, and those that are open now."""

from __future__ import annotations

from tests.core.live.decode.growing_dumps import Film, open_ranges
from tests.core.live.decode.viewed_dumps import viewed


def test_open_ranges_are_those_of_now(film: Film) -> None:
    first = open_ranges(film, ("step", 1), ("attn", 2))
    with viewed(first.data()) as viewer:
        viewer.read()
        assert viewer.seen.open() == [(1, 100, ("step",)), (2, 100, ("step", "attn"))]
        # The same number of them, in the same place.
        film.range(["step", "attn"], 2, 5)
        viewer.write(open_ranges(film, ("step", 1), ("mlp", 6)).data())
        viewer.read()
        assert viewer.seen.open() == [(1, 100, ("step",)), (6, 100, ("step", "mlp"))]
        assert viewer.seen.ended() == [(2, 5, 100, ("step", "attn"))]
        viewer.write(open_ranges(film).data())
        viewer.read()
        assert viewer.seen.open() == []


def test_a_range_that_has_ended_is_open_no_more(film: Film) -> None:
    """The library writes a range as ended first, and a moment later it is seen open no more."""
    film.range(["step", "attn"], 2, 5)
    seen = open_ranges(film, ("step", 1), ("attn", 2))
    with viewed(seen.data()) as viewer:
        for _ in range(3):
            viewer.read()
            assert viewer.seen.open() == [(1, 100, ("step",))]


def test_only_push_pop_ranges_come(film: Film) -> None:
    film.range(["pushed"], 0, 5)
    film.range(["started"], 0, 5, kind=1, node=0)
    film.range(["mark"], 3, 3, kind=2, node=0)
    with viewed(film.data()) as viewer:
        viewer.read()
        assert viewer.seen.ended() == [(0, 5, 100, ("pushed",))]


def test_ranges_without_a_path_of_their_own_count_in_those_around_them(film: Film) -> None:
    names = ["r"] * 250
    film.range(names[:249], 0, 9)
    film.range(names, 1, 8)
    # The library gives what is in the 250th range the path of that one.
    film.range(names, 2, 7)
    with viewed(film.data()) as viewer:
        viewer.read()
        assert [len(path) for *_, path in viewer.seen.ended()] == [249]
        assert viewer.dump.warnings() == (
            "2 NVTX ranges are nested too deep: their time counts in the range around them",
        )


def test_ranges_without_times_are_counted_once(film: Film) -> None:
    film.range(["r"], 0, 5)
    film.record("range", start=1 << 60, end=(1 << 60) + 5, tid=100)
    with viewed(film.data()) as viewer:
        for _ in range(2):
            viewer.read()
        assert len(viewer.seen.ended()) == 1
        assert viewer.dump.warnings() == ("1 NVTX range has no time that makes sense: left out",)


def test_payloads_are_kept_as_examples(film: Film) -> None:
    film.range(["r"], 0, 5, payload=7, payload_type=2)
    with viewed(film.data()) as viewer:
        viewer.read()
        assert list(viewer.shared.frames.build().examples.values()) == [("int64 7",)]
