"""Makes this Python look like one of macOS: its names, without what only Linux has.

For a process with this folder on PYTHONPATH. Modules with compiled parts are imported before, for
theirs are those of Linux; psutil alone still sees /proc. What only macOS has is not there.
"""

from __future__ import annotations

import asyncio  # noqa: F401
import ctypes
import fcntl
import os
import platform
import resource
import select
import selectors
import signal
import socket
import subprocess  # noqa: F401
import sys
import tempfile
import time

import cxxfilt  # noqa: F401
import msgspec  # noqa: F401
import numpy  # noqa: F401
import psutil
import regex  # noqa: F401

_OF_LINUX = {
    fcntl: ("F_ADD_SEALS", "F_GETPIPE_SZ", "F_OFD_SETLK", "F_SETPIPE_SZ"),
    os: (
        *("CLONE_NEWNS", "O_LARGEFILE", "O_NOATIME", "O_PATH", "O_TMPFILE", "P_PIDFD"),
        *("copy_file_range", "eventfd", "fdatasync", "getrandom", "getresuid", "memfd_create"),
        *("pidfd_open", "pipe2", "posix_fadvise", "posix_fallocate", "sched_getaffinity"),
        *("sched_setaffinity", "setns", "splice", "unshare"),
    ),
    resource: ("prlimit",),
    select: ("EPOLLIN", "epoll"),
    signal: ("SIGPOLL", "SIGPWR", "SIGRTMAX", "SIGRTMIN", "sigtimedwait", "sigwaitinfo"),
    socket: ("MSG_CMSG_CLOEXEC", "SOCK_CLOEXEC", "SOCK_NONBLOCK", "SO_PEERCRED"),
    time: ("CLOCK_BOOTTIME", "pthread_getcpuclockid"),
}
_ABSENT = ("/proc", "/sys", "/run")
_OF_GLIBC = ("mallopt", "malloc_trim")


def _is_absent(path: object) -> bool:
    text = os.fsdecode(path) if isinstance(path, str | bytes | os.PathLike) else ""
    return text.startswith(_ABSENT) and not _is_psutil()


def _is_psutil() -> bool:
    frame = sys._getframe()
    while frame.f_back:
        frame = frame.f_back
        if frame.f_code.co_filename.startswith(os.path.dirname(psutil.__file__)):  # noqa: PTH120
            return True
    return False


def _hook(event: str, args: tuple[object, ...]) -> None:
    if event in ("open", "os.listdir", "os.scandir") and _is_absent(args[0]):
        raise FileNotFoundError(2, "No such file or directory", args[0])


def _without(name: str) -> None:
    """Have a function of os find nothing in the folders that macOS lacks."""
    real = getattr(os, name)

    def checked(path: object, *args: object, **options: object) -> object:
        if _is_absent(path):
            raise FileNotFoundError(2, "No such file or directory", path)
        return real(path, *args, **options)

    setattr(os, name, checked)


class _Library(ctypes.CDLL):
    def __getattr__(self, name: str) -> ctypes._NamedFuncPointer:
        if name in _OF_GLIBC:
            raise AttributeError(name)
        return super().__getattr__(name)


sys.platform = "darwin"
platform.system = lambda: "Darwin"
platform.machine = lambda: "arm64"
platform.libc_ver = lambda *_, **__: ("", "")
tempfile._O_TMPFILE_WORKS = False  # type: ignore[attr-defined]
selectors.DefaultSelector = selectors.PollSelector  # type: ignore[misc, assignment]
ctypes.CDLL = _Library  # type: ignore[misc]
for module, names in _OF_LINUX.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
for name in ("lstat", "readlink", "stat"):
    _without(name)
sys.addaudithook(_hook)
