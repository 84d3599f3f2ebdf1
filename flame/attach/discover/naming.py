"""What processes are called."""

from __future__ import annotations

from collections.abc import Sequence

from flame.record.folder import recording_name

_OWN = "flame"
_WITH_VALUE = ("-W", "-X")


def job_name(process: str, command: Sequence[str]) -> str:
    """What a job is called: its script or module, else what its first process calls itself.

    ``process`` is that as the system has it, ``command`` the words it was started with, or a single
    title that it has given itself.
    """
    if not command:
        return process
    title = command[0].split(maxsplit=1)
    if len(title) > 1:  # "nginx: master process /usr/sbin/nginx"
        return title[0].rstrip(":")
    return recording_name(command)


def is_flame(command: Sequence[str]) -> bool:
    """Whether these are the words of a Python that runs flame: the script, or ``-m flame``."""
    words = iter(command[1:])
    for word in words:
        if word in _WITH_VALUE:
            next(words, "")
        elif word in ("-c", "-m"):
            return word == "-m" and next(words, "") == _OWN
        elif not word.startswith("-"):
            return word.rpartition("/")[2] == _OWN
    return False


def short_command(command: str) -> str:
    """``command`` on one line, its program without the folder."""
    program, *words = command.split() or [""]
    return " ".join([program.rpartition("/")[2], *words])
