"""Explain why a process cannot be looked into, and what to do about it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from flame.attach.discover.proc import read_process, user_name

_SCOPE = Path("/proc/sys/kernel/yama/ptrace_scope")
_PARENTS, _ROOT, _NOBODY = 1, 2, 3
_SCOPES = {
    _PARENTS: "only its parents and root may look into it (kernel.yama.ptrace_scope is 1): run "
    "flame as root, or allow it: sudo sysctl kernel.yama.ptrace_scope=0",
    _ROOT: "only root may look into it (kernel.yama.ptrace_scope is 2): run flame as root",
    _NOBODY: "nobody may look into it before the next boot (kernel.yama.ptrace_scope is 3): start "
    "it with flame record",
}
_CAP_SYS_PTRACE = 19


def explain(pid: int) -> str:
    """Explain why flame may not look into the memory of ``pid``, and the remedy, in one line.

    To be put behind the pid or the name and a colon. Empty where nothing is in the way; whether it
    is a Python is not asked. What it takes to see open files and mappings is less: ptrace_scope
    does not forbid that.
    """
    if sys.platform != "linux":
        return ""  # who looks into processes there (py-spy) says it
    try:
        status = _status(pid)
    except OSError:
        return _missing(pid)
    return _no_program(pid, status) or ("" if _allowed(pid) else _forbidden(pid, status))


def _status(pid: int) -> dict[str, str]:
    """The lines of /proc/PID/status, by what stands before the colon."""
    lines = Path(f"/proc/{pid}/status").read_text("utf-8", "replace").split("\n")
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def _missing(pid: int) -> str:
    """Why there is nothing at /proc/PID: gone, or hidden by how /proc is mounted (hidepid)."""
    if not _exists(pid):
        return "there is no such process"
    return "it is hidden from other users (hidepid of /proc): run flame as its user or as root"


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return pid > 0  # others name groups


def _no_program(pid: int, status: dict[str, str]) -> str:
    """What it is if no process that runs a program."""
    if status.get("Tgid") != str(pid):
        return f"it is a thread of the process {status.get('Tgid')}: name that one"
    process = read_process(pid)
    if not process or process.is_zombie:
        return "it has ended"
    if process.kernel:
        return "it belongs to the kernel and runs no program"
    return ""


def _allowed(pid: int) -> bool:
    """Asked of the kernel itself, for which there are more reasons than are told here."""
    try:
        os.close(os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC))
    except OSError:
        return False
    return True


def _forbidden(pid: int, status: dict[str, str]) -> str:
    """Which of the kernel's rules forbids it, those first that others do not matter without."""
    if _may_trace_all():
        return _SCOPES[_NOBODY] if _scope() == _NOBODY else _unknown()
    if os.geteuid() == 0:
        return (
            "root may not look into processes here (no CAP_SYS_PTRACE): start the container "
            "with --cap-add=SYS_PTRACE"
        )
    return _others(status) or _protected(pid) or _SCOPES.get(_scope(), "") or _unknown()


def _others(status: dict[str, str]) -> str:
    uids = [int(word) for word in status.get("Uid", "").split()[:3]]
    other = next((uid for uid in uids if uid != os.geteuid()), None)
    if other is None:
        return ""
    name = user_name(other)
    inside = ", or in its container" if len(status.get("NSpid", "").split()) > 1 else ""
    users = "root" if other == 0 else f"{name} or as root"
    return f"it belongs to {name}: run flame as {users}{inside}"


def _protected(pid: int) -> str:
    """The files in /proc of a process that is not dumpable belong to root; proc(5)."""
    try:
        owner = Path(f"/proc/{pid}/mem").stat().st_uid
    except OSError:
        return ""
    if owner == os.geteuid():
        return ""
    return "it keeps its memory to itself (it has changed its user, or asked for it): run as root"


def _scope() -> int:
    """0, without a rule of its own, where the kernel has none."""
    try:
        return int(_SCOPE.read_text())
    except (OSError, ValueError):
        return 0


def _unknown() -> str:
    return (
        "the system forbids looking into it (SELinux, AppArmor, a container's seccomp profile): "
        "start it with flame record"
    )


def _may_trace_all() -> bool:
    """Whether this process has CAP_SYS_PTRACE."""
    capabilities = _status(os.getpid()).get("CapEff", "0")
    return bool(int(capabilities, 16) >> _CAP_SYS_PTRACE & 1)
