"""Clean the names of NVTX ranges: set volatile ids, shapes and phases apart from the name."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from flame.core.lazy_regex import lazy_regex

_PAYLOAD_CHARS = 500

# Libraries that write plain names and keep their variables in payloads: nothing to clean.


class RangeName(NamedTuple):
    """Hold a cleaned NVTX range name and what was set aside from its text.

    `shapes` is the tensor shapes as written (`[[16, 2880], []]`); `detail` is everything else that
    is the same at each iteration or tells its phase (`phase=generation, 0 ctx reqs, 8 gen reqs`).
    Both are empty where the text had none.
    """

    name: str
    shapes: str = ""
    detail: str = ""


def clean_range(text: str) -> RangeName:
    """Take the ids that differ at every call out of a range's text; keep shapes and phase aside.

    Never raises and takes time linear in the text. A text of no known framework is the name as it
    is: numbers such as `layer_0` or `step 103` carry meaning.
    """
    if text.startswith(_PREFIXES):
        for prefix, clean in _CLEAN_BY_PREFIX:
            if text.startswith(prefix):
                return clean(text)
    return _emit_nvtx(text) if " = " in text else RangeName(text)


# A printed list of integers or of (op id, output) pairs. Possessive throughout: a hostile text may
# hold thousands of false starts. The list may end with the text, which NVTX limits in length.
_LIST = r"\[(?:[\[\]()\d-]++|, ?(?=[\[\](\d-]))*+"
_SIZES = lazy_regex(rf", sizes = ({_LIST})")
_SUFFIX = lazy_regex(
    r", (?:"
    r"(?:op_id|(?:stashed )?seq) = -?\d++(?=, |\Z)"
    rf"|(?:sizes|input_op_ids) = {_LIST}(?:,? ?\Z|(?=, ))"
    r")"
)


def _emit_nvtx(text: str) -> RangeName:
    """`aten::mul, seq = 5, op_id = 871, sizes = [[4], []], input_op_ids = [(867,0)]` (PyTorch)."""
    shapes = ""
    if (sizes := _SIZES.search(text)) is not None:
        shapes = _whole_list(sizes[1])
    return RangeName(_SUFFIX.sub("", text) or text, shapes)


def _whole_list(text: str) -> str:
    """The list itself; where it was cut off, its complete items only."""
    if text.count("[") == text.count("]"):
        return text
    whole = text[: text.rfind("]") + 1]
    return whole + "]" if whole else ""


# A string, a shape, or a mark. An unterminated quote runs to the end of the text, so that each
# character is looked at once; shapes as one token save a third of the time of a typical text.
_DICT_TOKEN = lazy_regex(
    r"""'(?:[^'\\]++|\\.)*+'?+|"(?:[^"\\]++|\\.)*+"?+|\[[\d, ]*+\]|[\[\](){},:]""", re.DOTALL
)


def _layer_dict(text: str) -> RangeName:
    """`{'Module': 'model.layers.0.mlp', 'TrainableParams': {…}, 'Inputs': [[16, 2880]], …}`.

    Printed by layer-wise NVTX tracing (vLLM, TensorRT-LLM). A module path that is itself cut off
    leaves the text as it is.
    """
    items = dict(_plain_items(text) or _dict_items(text))
    module = _unquoted(items.pop("Module", ""))
    shapes = items.pop("Inputs", "")
    if not module:
        return RangeName(text)
    detail = ", ".join(f"{key}={value.replace(chr(39), '')}" for key, value in items.items())
    return RangeName(module, shapes, detail)


# A word and its value: a string or number, a dict of such and of shapes, or a list of shapes.
_ITEM = lazy_regex(
    r"'(\w++)': ("
    r"'[^'\\]*+'|[\w.]++"
    r"|\{(?:[^][(){}'\"]|'[^'\\]*+'|\[[\d, ]*+\]|\([\d, ]*+\))*+\}"
    r"|\[(?:[\d, ]|\[[\d, ]*+\])*+\]"
    r")(?:, |\}\Z)"
)
_MARKS = len("'': , ")


def _plain_items(text: str) -> list[tuple[str, str]]:
    """What `_dict_items` finds, in a seventh of the time, where there is nothing but such items."""
    items = _ITEM.findall(text)
    # The brace that the text begins with makes up for the blank that the last item lacks.
    is_whole = sum(len(key) + len(value) + _MARKS for key, value in items) == len(text)
    return items if is_whole else []


def _dict_items(text: str) -> Iterator[tuple[str, str]]:
    """Key and value text of each pair of a printed dict; a pair that is cut off is left out.

    A scan and not `ast.literal_eval`: it needs no whole text, knows no recursion and stays linear.
    """
    depth = start = 0
    key = ""
    for match in _DICT_TOKEN.finditer(text):
        token = match[0]
        if token in ("[", "(", "{"):
            depth += 1
        elif token in ("]", ")", "}"):
            depth -= 1
        elif depth != 1 or token not in (",", ":"):
            continue
        if depth == 1 and token == "{":
            start = match.end()
        elif depth == 1 and token == ":" and not key:
            key, start = _unquoted(text[start : match.start()].strip()), match.end()
        elif key and (depth == 0 or (depth == 1 and token == ",")):
            yield key, text[start : match.start()].strip()
            key, start = "", match.end()


def _unquoted(text: str) -> str:
    quoted = len(text) >= 2 and text[0] in "'\"" and text[-1] == text[0]
    return text[1:-1] if quoted else text


_EXECUTE = lazy_regex(
    r"execute_context_(?P<ctx>\d{1,9})\((?P<ctx_tokens>\d{1,9})(?:_\d{1,18})?\)"
    r"_generation_(?P<gen>\d{1,9})\((?P<gen_tokens>\d{1,9})(?:_\d{1,18})?\)"
)
_SUMS = r"sq(?P<{}_tokens>\d{{1,9}})sk\d{{1,18}}(?:sqsq\d{{1,18}}sqsk\d{{1,18}})?"
_EXECUTE_ALL = lazy_regex(
    rf"execute_\d{{1,9}}_context_(?P<ctx>\d{{1,9}})\({_SUMS.format('ctx')}\)"
    rf"_generation_(?P<gen>\d{{1,9}})\({_SUMS.format('gen')}\)"
)


def _execute(text: str) -> RangeName:
    """Requests and tokens of one step of vLLM, per phase; three spellings of it are known.

    `execute_context_2(512)_generation_8(8)`; behind the tokens their squared sum
    (`context_1(888_788544)`); `execute_32_context_0(sq0sk0sqsq0sqsk0)_generation_32(sq32sk55086…)`
    with sums over the lengths of the queries (the tokens), of the keys, and of products of both.
    """
    match = _EXECUTE.fullmatch(text) or _EXECUTE_ALL.fullmatch(text)
    if match is None:
        return RangeName(text)
    counts = {name: int(number) for name, number in match.groupdict().items()}
    ctx, gen = counts["ctx"], counts["gen"]
    phase = ("mixed" if gen else "context") if ctx else "generation"
    requests = f"{ctx} ctx reqs, {counts['ctx_tokens']} ctx tokens"
    generated = f"{gen} gen reqs, {counts['gen_tokens']} gen tokens"
    return RangeName("execute", detail=f"phase={phase}, {requests}, {generated}")


_FORWARD_STEP = lazy_regex(
    r"(\[Executor\] _forward_step)(?: \d++)?+: (\d{1,9}) ctx reqs((?:, \d{1,9} \w{1,9} \w{1,9})*+)"
)


def _forward_step(text: str) -> RangeName:
    """`[Executor] _forward_step 103: 0 ctx reqs, 8 gen reqs` (TensorRT-LLM); early ones unnumbered.

    Its batches count as context as soon as they hold one context request.
    """
    match = _FORWARD_STEP.fullmatch(text)
    if match is None:
        return RangeName(text)
    name, ctx, counts = match.groups()
    phase = "context" if int(ctx) else "generation"
    return RangeName(name, detail=f"phase={phase}, {ctx} ctx reqs{counts}")


_PROFILER_STEP = lazy_regex(r"ProfilerStep#\d+")


def _profiler_step(text: str) -> RangeName:
    return RangeName("ProfilerStep" if _PROFILER_STEP.fullmatch(text) else text)


_CLEAN_BY_PREFIX: tuple[tuple[str, Callable[[str], RangeName]], ...] = (
    ("{'Module'", _layer_dict),
    ('{"Module"', _layer_dict),
    ("execute_", _execute),
    ("[Executor] _forward_step", _forward_step),
    ("ProfilerStep#", _profiler_step),
)
_PREFIXES = tuple(prefix for prefix, _ in _CLEAN_BY_PREFIX)

KEPT_PREFIXES = (*(prefix.encode() for prefix in _PREFIXES), b",")
"""Texts that begin so are named otherwise; one of running numbers alone is its own name."""

# What is before or behind the number must not make a list in front of it end elsewhere: there is no
# separator before it, and behind it none at the end of the text, or of what goes on in a list.
_NEXT_ITEM = rb"(?=, [^\[\](0-9\x80-\xff-])"
_RUNNING = lazy_regex(
    rb"(?<![, ]), (?:"
    rb"(?:op_id|(?:stashed )?seq) = -?[0-9]++(?:" + _NEXT_ITEM + rb"|\Z)"
    rb"|input_op_ids = \[(?:[\[\]()0-9-]++|, ?(?=[\[\](0-9-]))*+(?:,? ?\Z|" + _NEXT_ITEM + rb")"
    rb")"
)


def strip_running(text: bytes) -> bytes:
    """Leave out the numbers that PyTorch's emit_nvtx counts up: the cleaned name is the same.

    Millions of ranges then have few texts. `csrc/texts.c` does the same.
    """
    if b" = " not in text or text.startswith(KEPT_PREFIXES):
        return text
    return _RUNNING.sub(b"", text) or text


def payload_text(json_text: str) -> str:
    """Format an NVTX JSON payload on one line, at most 500 characters; invalid JSON as it is."""
    import msgspec

    try:
        line = msgspec.json.format(json_text, indent=0)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        line = " ".join(json_text[: 2 * _PAYLOAD_CHARS].splitlines())
    return line if len(line) <= _PAYLOAD_CHARS else line[: _PAYLOAD_CHARS - 1] + "…"
