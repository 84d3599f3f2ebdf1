"""Run in the program that is attached to, by its own Python: loads the library into it.

Nothing of flame can be imported there, nothing may get out and nothing be left behind.
"""


def attach(library: str, folder: str, place: str) -> None:
    """Load ``library``, which then records into ``folder`` (empty: the usual one).

    ``place`` is where this script lies. What came of it is written to the file ``wanted`` there,
    which then becomes ``said``. Who wanted to know may have given up and removed it: then the rest
    is removed too.
    """
    import os

    try:
        import ctypes

        entry = ctypes.CDLL(library).flame_attach
        entry.argtypes, entry.restype = [ctypes.c_char_p], ctypes.c_int
        said = "recording" if entry(os.fsencode(folder)) else "refused"
    except Exception as error:  # none of them is the program's
        said = f"{type(error).__name__}: {error}"
    try:
        file = os.open(f"{place}/wanted", os.O_WRONLY | os.O_CLOEXEC)
        os.write(file, said.encode("utf-8", "replace"))
        os.close(file)
        os.rename(f"{place}/wanted", f"{place}/said")  # noqa: PTH104 (imports pathlib into it)
    except OSError:
        _remove(place)


def _remove(place: str) -> None:
    import os

    try:
        os.unlink(f"{place}/load.py")  # noqa: PTH108
        os.rmdir(place)  # noqa: PTH106
    except OSError:
        pass
