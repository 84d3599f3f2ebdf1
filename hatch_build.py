"""Puts the compiled libraries into the wheel: what cannot be built here flame does without."""

from __future__ import annotations

import importlib.util
import os
import platform
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Part(NamedTuple):
    """A library with a build script in a folder of its own."""

    folder: str
    leave_out: str
    """The variable that leaves it out where it is 1."""
    without: str
    """What flame does without it."""


PARTS = (
    Part("csrc", "FLAME_NO_NATIVE", "read large traces more slowly, by numpy alone"),
    Part("inject", "FLAME_NO_INJECT", "not be able to record, only to view"),
)


class LibraryHook(BuildHookInterface[Any]):
    """Compiles the libraries: for a wheel beside the sources, for an editable one among them.

    A variable leaves each of them out. So does a machine that cannot compile it, with a warning.
    """

    def dependencies(self) -> list[str]:
        """NVIDIA's headers, 13 MB, where they are of use."""
        inject = PARTS[1]
        given = os.environ.get("FLAME_CUDA_INCLUDE")
        if given or not wanted(inject) or not build_script(self.root, inject).possible():
            return []
        headers: list[str] = self.metadata.core.optional_dependencies["native"]
        return headers

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds the libraries and names a wheel that holds one after its machine."""
        # Not among the sources: what they hold is not for a wheel to change.
        self._folder = tempfile.TemporaryDirectory()
        for part in filter(wanted, PARTS):
            script = build_script(self.root, part)
            try:
                if version == "editable":
                    script.build()
                else:
                    self._into_wheel(script, build_data)
            except script.BuildError as error:
                self.app.display_warning(f"flame will {part.without}: {error}")

    def _into_wheel(self, script: ModuleType, build_data: dict[str, Any]) -> None:
        library = Path(self._folder.name) / script.LIBRARY.name
        script.build(library)
        build_data["force_include"][str(library)] = f"flame/{library.name}"
        build_data["pure_python"] = False
        # release/wheels.py has a compiler for another machine than this one.
        machine = os.environ.get("FLAME_MACHINE") or platform.machine()
        build_data["tag"] = f"py3-none-linux_{machine}"


def wanted(part: Part) -> bool:
    """Whether the library is wanted at all."""
    return os.environ.get(part.leave_out, "0") == "0"


def build_script(root: str, part: Part) -> ModuleType:
    """The build script of these sources: they are not on the path of modules here."""
    name = f"flame_{part.folder}_build"
    spec = importlib.util.spec_from_file_location(name, f"{root}/{part.folder}/build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
