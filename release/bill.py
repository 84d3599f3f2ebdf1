"""Write what a release consists of as CycloneDX (SBOM): dependencies, and what is compiled in."""

from __future__ import annotations

import json
import re
import venv
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from release.tools import LOCKED_DEPENDENCIES, LOCKED_TOOLS, PLACE, ROOT, run

# By the package that brings it, as NOTICE tells: what of it is in the compiled libraries.
_COMPILED_IN = {
    "ziglang": (
        "libc++, libc++abi, libunwind and compiler-rt of LLVM",
        "Apache-2.0 WITH LLVM-exception",
    ),
    "nvidia-nvtx": ("headers of NVTX", "Apache-2.0 WITH LLVM-exception"),
    "nvidia-cuda-cupti": ("interfaces of CUPTI", "LicenseRef-NVIDIA-CUDA-EULA"),
    "nvidia-cuda-runtime": ("interfaces of CUDA", "LicenseRef-NVIDIA-CUDA-EULA"),
}
_VALIDATE = """
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
sys.exit(JsonStrictValidator(SchemaVersion.V1_6).validate_str(open(sys.argv[1]).read()))
"""


def write_bill(wheel: Path, version: str, python: Path, folder: Path) -> Path:
    """Write the bill of ``wheel``, installed with the versions that are locked, into ``folder``."""
    with TemporaryDirectory(prefix="bill.", dir=PLACE) as scratch:
        venv.create(scratch, with_pip=False)
        installed = Path(scratch) / "bin" / "python"
        pip = (python, "-m", "pip", "--quiet", "--python", installed, "install")
        options = ("--no-deps", "--no-compile")
        run(*pip, *options, "--require-hashes", "-r", LOCKED_DEPENDENCIES)
        run(*pip, *options, wheel)
        describe = (python, "-m", "cyclonedx_py", "environment", "--output-reproducible")
        about = ("--spec-version", "1.6", "--pyproject", ROOT / "pyproject.toml")
        bill = json.loads(run(*describe, *about, installed))
    text = json.dumps(completed(bill, version), indent=2, sort_keys=True) + "\n"
    target = folder / f"{wheel.name.split('-')[0]}-{version}.cdx.json"
    target.write_text(text, "utf-8")
    run(python, "-c", _VALIDATE, target)
    return target


def completed(bill: dict[str, Any], version: str) -> dict[str, Any]:
    """Return the bill with what the metadata of packages do not tell.

    That is the version, which pyproject.toml leaves to the code, and what is compiled in.
    """
    root = bill["metadata"]["component"] | {"version": version}
    compiled = [_component(package) for package in _COMPILED_IN]
    made_of = [one["bom-ref"] for one in compiled]
    edges = [
        edge | {"dependsOn": [*edge["dependsOn"], *made_of]}
        if edge["ref"] == root["bom-ref"]
        else edge
        for edge in bill["dependencies"]
    ]
    return bill | {
        "metadata": bill["metadata"] | {"component": root},
        "components": [*bill["components"], *compiled],
        "dependencies": [*edges, *({"ref": reference} for reference in made_of)],
    }


def _component(package: str) -> dict[str, Any]:
    """Describe what a package of the lock file brings into the compiled libraries."""
    what, licence = _COMPILED_IN[package]
    found = re.search(rf"^{package}==([^ ]+)", LOCKED_TOOLS.read_text("utf-8"), re.MULTILINE)
    assert found, package
    return {
        "type": "library",
        "bom-ref": f"{package}=={found[1]}",
        "name": package,
        "version": found[1],
        "purl": f"pkg:pypi/{package}@{found[1]}",
        "description": f"{what}, in the compiled libraries of wheels for Linux",
        "licenses": [{"expression": licence}],
    }
