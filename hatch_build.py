"""Puts the injection library into the wheel, or leaves the wheel to be a viewer alone."""

from __future__ import annotations

import importlib.util
import os
import platform
import tempfile
from pathlib import Path
from types import ModuleType
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class LibraryHook(BuildHookInterface[Any]):
    """Compiles `inject/`: for a wheel beside the sources, for an editable one among them.

    FLAME_NO_INJECT=1 leaves it out. So does a machine that cannot compile it, with a warning.
    """

    def dependencies(self) -> list[str]:
        """NVIDIA's headers, 13 MB, where they are of use."""
        given = os.environ.get("FLAME_CUDA_INCLUDE")
        if given or not wanted() or not build_script(self.root).possible():
            return []
        headers: list[str] = self.metadata.core.optional_dependencies["native"]
        return headers

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Builds the library and names the wheel after its machine."""
        if not wanted():
            return
        script = build_script(self.root)
        try:
            if version == "editable":
                script.build()
            else:
                self._into_wheel(script, build_data)
        except script.BuildError as error:
            self.app.display_warning(f"flame will not be able to record, only to view: {error}")

    def _into_wheel(self, script: ModuleType, build_data: dict[str, Any]) -> None:
        # Not among the sources: what they hold is not for a wheel to change.
        self._folder = tempfile.TemporaryDirectory()
        library = Path(self._folder.name) / script.LIBRARY.name
        script.build(library)
        build_data["force_include"][str(library)] = f"flame/{library.name}"
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-linux_{platform.machine()}"


def wanted() -> bool:
    """Whether the library is wanted at all."""
    return os.environ.get("FLAME_NO_INJECT", "0") == "0"


def build_script(root: str) -> ModuleType:
    """`inject/build.py` of these sources: they are not on the path of modules here."""
    spec = importlib.util.spec_from_file_location("flame_inject_build", f"{root}/inject/build.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
