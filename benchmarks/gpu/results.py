"""Keep results in one file that can be sent: no environment, no names of machine or user."""

from __future__ import annotations

import getpass
import json
import os
import platform
import re
import socket
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.gpu.check import Result
from flame import __version__

FILE = "results.json"
PACKAGES = ("torch", "triton", "jax", "cupy-cuda13x", "cupy-cuda12x", "nvtx", "numpy")
SHORTEST_NAME = 3
"""Shorter names of hosts and users are part of too many other words."""


class Results:
    """Write all results anew after each check: what a machine that goes down has told stays."""

    def __init__(self, out: Path, options: Mapping[str, Any]) -> None:
        self.path = out / FILE
        self.found: list[Result] = []
        self.head = {"flame": __version__, "options": dict(options), "machine": machine()}
        self.hidden = personal_words()
        self.fault = ""

    def add(self, result: Result) -> None:
        """Keep one more; where it cannot be written, ``fault`` says why."""
        self.found.append(result)
        self.write()

    def write(self, **more: Any) -> None:
        """Replace the file as a whole, with further facts."""
        checks = [one.as_json() | {"said": one.said} for one in self.found]
        content = self.masked(self.head | more | {"checks": checks})
        part = self.path.with_suffix(".part")
        try:
            part.write_text(json.dumps(content, indent=1, default=str) + "\n", "utf-8")
            part.replace(self.path)
            self.fault = ""
        except OSError as error:
            self.fault = f"{self.path}: {error.strerror or error}"
            with suppress(OSError):
                part.unlink()

    def masked(self, value: Any) -> Any:
        """Copy ``value`` with what tells of machine and user taken out of texts, keys excepted."""
        if isinstance(value, str):
            for pattern, mask in self.hidden:
                value = pattern.sub(mask, value)
            return value
        if isinstance(value, dict):
            return {key: self.masked(one) for key, one in value.items()}
        if isinstance(value, list):
            return [self.masked(one) for one in value]
        return value


def personal_words() -> list[tuple[re.Pattern[str], str]]:
    """List what is not to be sent, and what stands in its place."""
    words = [(str(Path.home()), "~"), (socket.getfqdn(), "HOST"), (socket.gethostname(), "HOST")]
    with suppress(KeyError, OSError):
        words.append((getpass.getuser(), "USER"))
    return [
        (re.compile(rf"(?<!\w){re.escape(word)}(?!\w)"), mask)
        for word, mask in words
        if len(word) >= SHORTEST_NAME and word not in ("root", "localhost")
    ]


def machine() -> dict[str, Any]:
    """Describe what the checks run on, and no more of it than they need."""
    versions = {}
    for name in PACKAGES:
        with suppress(metadata.PackageNotFoundError):
            versions[name] = metadata.version(name)
    return {
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "libc": " ".join(platform.libc_ver()),
        "python": platform.python_version(),
        "processors": os.cpu_count(),
        "packages": versions,
    }
