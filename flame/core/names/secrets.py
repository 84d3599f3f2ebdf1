"""Mask what is secret in a command line: passwords, tokens and keys.

``inject/process/secrets.cpp`` does the same to what is recorded, and ``tests/support/secrets.json``
says what comes of both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from flame.core.lazy_regex import lazy_regex

MASK = "***"

_NAME = lazy_regex(r"[A-Za-z0-9_.-]+")
_BETWEEN_WORDS = lazy_regex(r"(?<=[a-z0-9])(?=[A-Z])|[_.-]+")
_PASSWORD = lazy_regex(r"PASSWORD|PASSWD")
_SECRET_WORDS = {"SECRET", "SECRETS", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "APIKEY"}
_MODEL_TOKENS = {"PAD", "EOS", "BOS", "UNK", "SEP", "CLS", "MASK"}
_AUTHORIZATION = lazy_regex(r"(proxy-)?authorization", re.IGNORECASE)
_TOKEN = lazy_regex(
    r"(hf_|sk-|gh[posur]_|AKIA|github_pat_|glpat-|xox[bp]-|nvapi-|AIza).*?[A-Za-z0-9]{16}"
)
_ASSIGN = lazy_regex(r"[\"']?\]?(?P<spaces>[ \t\r\n]*)(?!==|://)[=:][ \t\r\n]*")
_SPACES = lazy_regex(r"[ \t\r\n]+(?=[^-])")
_AUTHORITY = lazy_regex(r"://[^ \t\r\n\"'/?#]*")
_ALL = lazy_regex(r".*", re.DOTALL)
_IN_QUOTES = lazy_regex(r"[^\"']*")
_IN_TEXT = lazy_regex(r"[^ \t\r\n\"'`&,;|<>)\]}]*")

_Span = tuple[int, int]
_NOTHING = (0, 0)


def mask_secrets(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words of a command line, each password, token and key replaced by ``***``.

    What is one goes by the name before it (``--api-key KEY``, ``HF_TOKEN=…``, ``"password": "…"``),
    or by its form (``hf_…``, ``Bearer …``, ``https://user:…@host``).
    """
    masked, is_secret = [], False
    for word in words:
        hides = is_secret and word != "" and not word.startswith("-")
        masked.append(MASK if hides else _mask_word(word))
        is_secret = _NAME.fullmatch(word) is not None and _takes_next(word)
    return tuple(masked)


def mask_line(line: str) -> str:
    """Return a command line whose words are divided by spaces, as `mask_secrets` does."""
    return " ".join(mask_secrets(line.split(" ")))


def _mask_word(word: str) -> str:
    return "".join(_pieces(word))


def _pieces(word: str) -> Iterator[str]:
    at = 0
    while at < len(word):
        (begin, end), seen = _look_at(word, at)
        yield word[at:begin] + MASK if begin < end else word[at:seen]
        at = seen


def _look_at(word: str, at: int) -> tuple[_Span, int]:
    """The secret that the text at ``at`` is or announces, and where to look on."""
    if name := _NAME.match(word, at):
        for begin, end in (_assigned(word, name), _following(word, name)):
            if begin < end:
                return (begin, end), end
        return (name.span() if _TOKEN.match(name[0]) else _NOTHING), name.end()
    if not word.startswith("://", at):
        return _NOTHING, at + 1
    begin, end = _password(word, at)
    return (begin, end), end if begin < end else at + 3


def _assigned(word: str, name: re.Match[str]) -> _Span:
    """The value in NAME=VALUE, NAME: VALUE, 'NAME': VALUE; of a whole word all of the rest."""
    is_header = _AUTHORIZATION.fullmatch(name[0]) is not None
    sign = _ASSIGN.match(word, name.end()) if is_header or _is_secret_name(name[0]) else None
    if sign is None:
        return _NOTHING
    if is_header:
        return _value(word, sign.end(), _IN_QUOTES)
    is_all = name.start() == 0 and word[name.end()] in "=:"
    return _value(word, sign.end(), _ALL if is_all else _IN_TEXT)


def _following(word: str, name: re.Match[str]) -> _Span:
    """The value behind an option within a longer text, as in ``sh -c``."""
    spaces = _SPACES.match(word, name.end())
    if spaces is None or not _takes_next(name[0]):
        return _NOTHING
    return _value(word, spaces.end(), _IN_TEXT)


def _value(word: str, at: int, unquoted: re.Pattern[str]) -> _Span:
    quote = word[at : at + 1]
    if quote and quote in "\"'":
        end = word.find(quote, at + 1)
        return at + 1, len(word) if end < 0 else end
    match = unquoted.match(word, at)
    return match.span() if match else _NOTHING


def _password(word: str, at: int) -> _Span:
    """That of ``://USER:PASSWORD@HOST``."""
    authority = _AUTHORITY.match(word, at)
    user, at_sign, _ = authority[0].rpartition("@") if authority else ("", "", "")
    colon = user.find(":", 3)
    return (at + colon + 1, at + len(user)) if at_sign and colon >= 0 else _NOTHING


def _takes_next(name: str) -> bool:
    return name.upper() == "BEARER" or (name.startswith("-") and _is_secret_name(name))


def _is_secret_name(name: str) -> bool:
    words = [word.upper() for word in _BETWEEN_WORDS.split(name) if word]
    if any(_PASSWORD.search(word) or word in _SECRET_WORDS for word in words):
        return True
    *before, last = words or [""]
    if last == "KEY":
        return bool(before)
    return last.endswith("TOKEN") and (not before or before[-1] not in _MODEL_TOKENS)
