"""The user's configuration file."""

from __future__ import annotations

import os
from unittest import mock

from flame.options.config import CHOICES, Config, read_config
from tests.fuzz.checks import FoundError, refusal_of, write
from tests.fuzz.mutations import mutate_lines
from tests.fuzz.target import Target

_WHOLE = (
    b'theme = "flame-light"\ndetails = false\nkernel_names = "mangled"\neditor = "vi +{line}"\n'
)


def check(data: bytes) -> None:
    path = write("config.toml", data)
    found: list[Config] = []
    with mock.patch.dict(os.environ, FLAME_CONFIG=str(path)):
        line = refusal_of(lambda: found.append(read_config()))
    if line and not line.startswith(f"{path}: "):
        raise FoundError(line)
    for config in found:
        if config.theme not in CHOICES["theme"] or not isinstance(config.keys, dict):
            raise FoundError(repr(config))


def seeds() -> list[bytes]:
    return [_WHOLE, b'ascii = true\n[keys]\n"main.quit" = "q,ctrl+q"\n', b'theme = """x\n"""\n']


TARGET = Target("config", seeds, check, mutate_lines, 1 << 11)
