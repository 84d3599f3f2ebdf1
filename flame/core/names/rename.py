"""Rename frames as users ask: by regular expressions, and without the number of their layer."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from flame.core.errors import UsageError
from flame.core.lazy_regex import lazy_regex
from flame.core.regex import Limit, compile_expression, substitute

# What hides an `=` inside a regex: escapes, classes (a leading `]` is literal) and groups.
_RULE_TOKEN = lazy_regex(r"\\.|\[\^?\]?(?:[^\]\\]++|\\.)*+\]|[()=]", re.DOTALL)


# Indices have at most three digits, so that sizes and years stay, and no digit stands before their
# dot, so that `cuda12.4` stays. The last number of `torch.2.1` may be a version's: a run of numbers
# is an index only where the path goes on behind it.
_MODULE_INDEX = lazy_regex(
    r"\.(?<=[^\W\d]\.)\d{1,3}(?=(?:\.\d{1,3}){0,9}(?:\.[^\W\d]|/)|[\])'\",:;\s]|\Z)"
)

_NUMBERED_LAYER = lazy_regex(r"((?:[Ll]ayers?|[Bb]locks?|LAYER)\d{1,2})\.\d{1,3}(?=\.[^\W\d])")

_LAYER_INDEX = lazy_regex(
    r"((?:[Ll]ayers?|LAYER)(?:[_#\[-]|[ :] ?)?|[Bb]locks?[_\[]?)\d{1,3}(?![^\W_]|_\d|\.\d)"
)

_LAYER_WORDS = ("ayer", "LAYER", "lock")

NN_MODULE = "nn.Module: "
"""How PyTorch's profiler begins the names of modules."""

_MODULE_NUMBER = lazy_regex(rf"\A({re.escape(NN_MODULE)}.*)_\d+\Z", re.DOTALL)


class Rename(NamedTuple):
    """Hold a `REGEX=REPL` rule, as for `re.sub`."""

    pattern: re.Pattern[str]
    replacement: str


def parse_rename(rule: str) -> Rename:
    r"""Split `REGEX=REPL` at the first `=` outside groups and character classes, not after `\`.

    `layers\.\d+=layers.*` folds all layers; `lr\=0.1=lr` matches a literal `=`.

    Raises:
        UsageError: no such `=`, no regex, a bad one, or a replacement with a bad group reference.
    """
    split = _split_at(rule)
    if split < 1:
        raise UsageError(f"--rename {rule!r}: expected REGEX=REPL")
    pattern, replacement = rule[:split], rule[split + 1 :]
    try:
        compiled = compile_expression(pattern)
        compiled.sub(replacement, "")  # reports bad group references without a match
    except (UsageError, re.error, IndexError) as error:
        raise UsageError(f"--rename {rule!r}: {error}") from None
    return Rename(compiled, replacement)


def apply_renames(name: str, rules: Iterable[Rename], limit: Limit | None = None) -> str:
    """Apply every rule to ``name``, in order; each sees what the rule before left.

    UsageError after the ``limit``, which is shared with other names.
    """
    limit = limit or Limit()
    for rule in rules:
        name = substitute(rule.pattern, rule.replacement, name, limit)
    return name


def fold_indices(name: str) -> str:
    """Fold a range name: `*` for the index of each layer: `layers.18.mlp` → `layers.*.mlp`.

    Numeric parts of module paths (`h.3.attn`, `(block.14.layer.0)`, `layer1.0.conv1`) and numbers
    right behind the word layer or block (`layer_12`, `layers[3]`, `Layer 7`) are indices. Versions,
    shapes and sizes are not.
    """
    name = _MODULE_INDEX.sub(".*", name)
    if not any(word in name for word in _LAYER_WORDS):
        return name
    return _LAYER_INDEX.sub(r"\1*", _NUMBERED_LAYER.sub(r"\1.*", name))


def fold_module(name: str) -> str:
    """Fold a Python function's name: `*` for the number that PyTorch's profiler gives a module.

    `nn.Module: DecoderLayer_12` → `nn.Module: DecoderLayer_*`; other names stay as they are.
    """
    return _MODULE_NUMBER.sub(r"\1_*", name)


def _split_at(rule: str) -> int:
    depth = 0
    for match in _RULE_TOKEN.finditer(rule):
        token = match[0]
        if token == "=" and depth <= 0:
            return match.start()
        depth += (token == "(") - (token == ")")
    return -1
