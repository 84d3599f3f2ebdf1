"""The instructions that were sampled, put beside their cubins: any machine can show them then."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from flame.core.errors import InputError
from flame.core.options import Progress, silent
from flame.core.readers.fdump.folder import list_dumps
from flame.core.readers.fdump.samples import read_sampled_functions
from flame.core.sass.disassembly import CUBINS, store_codes


def keep_instructions(folder: Path, progress: Progress = silent) -> list[str]:
    """Write ``cubins/*.sass`` for what the dumps in ``folder`` have sampled.

    What is to be said of instructions that have no text. Raises what ``progress`` does.
    """
    if not (folder / CUBINS).is_dir():
        return []
    wanted: dict[int, set[str]] = {}
    try:
        for dump in list_dumps(folder):
            with suppress(InputError):  # Whoever opens it is told.
                for crc, names in read_sampled_functions(dump).items():
                    wanted.setdefault(crc, set()).update(names)
        return store_codes(folder, wanted, progress)
    except OSError as error:
        reason = error.strerror or error
        return [f"instructions cannot be kept in {folder / CUBINS}: {reason}"]
