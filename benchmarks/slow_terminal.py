#!/usr/bin/env python3
"""Runs a command in this terminal as if it were at the other end of a slow link.

    python benchmarks/slow_terminal.py [--rate 20000] [--held-back 65536] flame view trace.sqlite

What the command writes arrives at so many bytes a second; so many more wait in the network, and
then the command has to wait. Keys arrive at once.
"""

from __future__ import annotations

import argparse
import os
import pty
import select
import sys
import termios
import time
import tty
from collections import deque


class Link:
    """Hold back bytes until the link has carried them."""

    def __init__(self, rate: int, most: int) -> None:
        self._rate, self._most = rate, most
        self._parts = deque[bytes]()
        self._waiting = 0
        self._due = 0.0

    @property
    def has_room(self) -> bool:
        """Whether the network takes more."""
        return self._waiting < self._most

    def send(self, data: bytes) -> None:
        """Take bytes at one end."""
        self._parts += (data[at : at + 256] for at in range(0, len(data), 256))
        self._waiting += len(data)

    def arrived(self) -> bytes:
        """Return what is at the other end by now."""
        now, carried = time.monotonic(), b""
        self._due = max(self._due, now - 0.01)
        while self._parts and self._due <= now:
            part = self._parts.popleft()
            self._due += len(part) / self._rate
            carried += part
        self._waiting -= len(carried)
        return carried

    def __bool__(self) -> bool:
        return bool(self._parts)


def relay(command: int, link: Link) -> None:
    """Carry bytes both ways until the command has ended, and all that it wrote has arrived."""
    ended = False
    while not ended or link:
        sources = [0, *([command] if link.has_room and not ended else [])]
        readable = select.select(sources, (), (), 0.005)[0]
        if command in readable:
            try:
                link.send(os.read(command, 4096))
            except OSError:  # the other end is closed
                ended = True
        if 0 in readable:
            os.write(command, os.read(0, 4096))
        os.write(1, link.arrived())


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    add = parser.add_argument
    add("--rate", type=int, default=20_000, help="bytes a second (default: %(default)s)")
    add("--held-back", type=int, default=65_536, help="bytes that wait (default: %(default)s)")
    add("command", nargs=argparse.REMAINDER)
    args = parser.parse_args()
    if not args.command or not sys.stdin.isatty():
        parser.error("name a command, in a terminal")
    pid, command = pty.fork()
    if not pid:
        os.execvp(args.command[0], args.command)
    termios.tcsetwinsize(command, termios.tcgetwinsize(0))
    before = termios.tcgetattr(0)
    tty.setraw(0)
    try:
        relay(command, Link(args.rate, args.held_back))
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    sys.exit(main())
