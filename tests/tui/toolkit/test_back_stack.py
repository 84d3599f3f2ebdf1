"""The way back and forward again."""

from __future__ import annotations

from flame.tui.toolkit.back_stack import BackStack


def test_back_and_forward_go_through_all_places() -> None:
    trail = BackStack[str]()
    for place in ("a", "b", "c"):
        trail.leave(place)
    assert trail.ahead(-1) == "c" and trail.ahead(1) is None
    assert [trail.go(-1, "d"), trail.go(-1, "c"), trail.go(-1, "b")] == ["c", "b", "a"]
    assert trail.go(-1, "a") is None and trail.ahead(-1) is None
    assert [trail.go(1, "a"), trail.go(1, "b"), trail.go(1, "c")] == ["b", "c", "d"]
    assert trail.go(1, "d") is None


def test_a_new_place_forgets_what_was_forward() -> None:
    trail = BackStack[str]()
    trail.leave("a")
    trail.go(-1, "b")
    trail.leave("a")
    assert trail.ahead(1) is None
    assert trail.go(-1, "c") == "a"


def test_only_the_last_places_are_remembered() -> None:
    trail = BackStack[int](most=3)
    for place in range(5):
        trail.leave(place)
    assert [trail.go(-1, 5), trail.go(-1, 4), trail.go(-1, 3)] == [4, 3, 2]
    assert trail.go(-1, 2) is None
