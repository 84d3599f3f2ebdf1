"""The help: jumped through by section, searched, opened at a word, also on a small screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.analysis.words.formats import NVTX, OPERATORS
from flame.tui.session.glossary import GLOSSARY, WORDS, meaning_of
from flame.tui.shell.actions import Action
from flame.tui.toolkit.dialog import TextEntry
from flame.tui.toolkit.lines import Lines, line_width
from flame.tui.widgets.help_page import HelpPage, word_lines
from tests.tui.conftest import User, open_app

SMALL = (80, 24)


def top(user: User) -> str:
    """The first line that is in sight."""
    return user.read("page").splitlines()[0].strip()


def typed(user: User) -> str:
    return user.app.screen.query_one(TextEntry).value


async def test_sections_follow_one_another_and_begin_again(decode: Path) -> None:
    async with open_app(decode, SMALL) as user:
        await user.press("question_mark")
        assert isinstance(user.app.screen, HelpPage)
        assert top(user) == "Views"
        await user.press("tab")
        assert top(user) == "Table"
        await user.press("tab", "tab", "shift+tab")
        assert top(user) == "Timeline"
        await user.press("home", "shift+tab")
        assert f"{WORDS}: {GLOSSARY[-1][0]}" in user.read("page")
        await user.press("tab")
        assert top(user) == "Views"


async def test_the_way_through_the_help_is_always_said(decode: Path) -> None:
    async with open_app(decode, SMALL) as user:
        await user.press("question_mark")
        assert (
            "tab next section · w words · / find · esc closes"
            in user.app.screen.query_one(TextEntry).placeholder
        )
        await user.press("w")
        assert top(user) == f"{WORDS}: {GLOSSARY[0][0]}"


async def test_what_is_typed_is_found_where_a_word_begins_so(decode: Path) -> None:
    async with open_app(decode, SMALL) as user:
        await user.press("question_mark", "slash", *"tail")
        assert typed(user) == "tail"
        assert top(user) == f"tail             {meaning_of('tail')}"
        await user.press("enter", "n")
        assert top(user) == f"tail             {meaning_of('tail')}"
        await user.press("escape")
        assert isinstance(user.app.screen, HelpPage) and not typed(user)
        await user.press("escape")
        assert not isinstance(user.app.screen, HelpPage)


async def test_matches_follow_one_another(decode: Path) -> None:
    async with open_app(decode, SMALL) as user:
        await user.press("question_mark", "slash", *"idle gap", "enter")
        page = user.app.screen.query_one("#page", Lines)
        seen = []
        for key in ("n", "n", "N"):
            seen.append((top(user), page.scroll_offset.y))
            await user.press(key)
        assert seen[0] != seen[1] != seen[2]
        assert (top(user), page.scroll_offset.y) == seen[1]


async def test_what_is_not_there_moves_nothing(decode: Path) -> None:
    async with open_app(decode, SMALL) as user:
        await user.press("question_mark", "slash", *"furlong")
        assert top(user) == "Views"
        assert user.app.screen.query_one(TextEntry).has_class("-nothing")
        await user.press(*["backspace"] * 7)
        assert not user.app.screen.query_one(TextEntry).has_class("-nothing")


async def test_sections_go_on_from_where_one_has_scrolled(decode: Path) -> None:
    async with open_app(decode, SMALL) as user:
        await user.press("question_mark", "w", "home", "pagedown", "pagedown")
        scrolled = user.app.screen.query_one("#page", Lines).scroll_offset.y
        assert scrolled == 20
        await user.press("tab")
        assert scrolled < user.app.screen.query_one("#page", Lines).scroll_offset.y < 40


async def test_what_was_found_stays_in_sight_when_the_search_is_left(decode: Path) -> None:
    async with open_app(decode, SMALL) as user:
        await user.press("question_mark", "slash", *"tail", "escape")
        assert top(user).startswith("tail ")
        await user.press("question_mark")
        assert not isinstance(user.app.screen, HelpPage)


async def test_typing_goes_on_from_what_was_found(decode: Path) -> None:
    async with open_app(decode, SMALL) as user:
        await user.press("question_mark", "slash", *"queue")
        found = top(user)
        await user.press("d")
        assert typed(user) == "queued" and top(user) != found
        assert top(user).startswith("queued ")


async def test_a_click_on_a_label_explains_it(decode: Path) -> None:
    async with open_app(decode, (120, 40)) as user:
        await user.press("end")
        await user.rest()
        lines = user.read("details").splitlines()
        row = next(y for y, line in enumerate(lines) if line.lstrip().startswith("total "))
        await user.pilot.click("#details", offset=(lines[row].index("total") + 1, row))
        await user.settle()
        assert isinstance(user.app.screen, HelpPage)
        assert top(user).split()[0] == "total"


async def test_the_palette_leads_to_the_words(decode: Path) -> None:
    async with open_app(decode, SMALL) as user:
        await user.screen.run_action(Action.WORDS)
        await user.settle()
        assert top(user) == f"{WORDS}: {GLOSSARY[0][0]}"


@pytest.mark.parametrize("width", [40, 76, 99, 100, 118, 196])
@pytest.mark.parametrize("terms", [NVTX, OPERATORS])
def test_words_fit_their_width_in_columns(width: int, terms: object) -> None:
    lines = word_lines(terms, width)  # type: ignore[arg-type]
    assert max(map(line_width, lines)) <= width
    text = "\n".join("".join(piece.text for piece in line) for line in lines)
    for _, entries in GLOSSARY:
        for entry in entries:
            if entry.word not in ("nvtx", "range", "operator", "scope", "NVTX", "in"):
                assert f"  {entry.word} " in text
