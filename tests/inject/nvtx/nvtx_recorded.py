"""The ranges of a dump in plain Python, for the tests of NVTX."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.writers.fdumprecords import records, text

DOMAIN, CATEGORY, THREAD, DEVICE = 1, 2, 3, 4
PUSH_POP, START_END, MARK = 0, 1, 2


@dataclass(frozen=True)
class Ended:
    """A range record; ``payload`` its type and bits, ``json`` an extended one."""

    name: str
    domain: str
    category: str
    kind: int
    path: tuple[str, ...]
    start: int
    end: int
    threads: tuple[int, int]
    color: int
    payload: tuple[int, int]
    json: str


class Recorded:
    """One dump."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.pid = int(path.name.split("-")[0])
        self.of = records(path)
        self.labels = {int(row["id"]): row for row in self.of["range_name"]}
        self.nodes = {int(row["id"]): row for row in self.of["node"] if row["kind"] == 1}

    @property
    def ended(self) -> list[Ended]:
        """All ranges and marks, in the order in which a thread ended them."""
        return [self._ended(row) for row in self.of["range"]]

    @property
    def open(self) -> list[tuple[str, ...]]:
        """The paths of the open ranges."""
        return [self.path_of(int(row["node"])) for row in self.of["open_range"]]

    @property
    def notes(self) -> list[str]:
        """What the user is told."""
        rows = [(self.text(row["key"]), self.text(row["value"])) for row in self.of["meta"]]
        return [value for key, value in rows if key == "note"]

    @property
    def dropped(self) -> int:
        """Records that were dropped, of all types."""
        return int(self.of["drop"]["count"].sum())

    def path_of(self, node: int) -> tuple[str, ...]:
        """The names of the ranges of a node, outermost first."""
        path = []
        while node:
            row = self.nodes[node]
            path.append(self.text(self.labels[int(row["item"])]["text"]))
            node = int(row["parent"])
        return tuple(reversed(path))

    def text(self, number: Any) -> str:
        return text(self.of, int(number))

    def names(self, kind: int) -> dict[tuple[int, int], str]:
        """Names of a kind by (scope, id)."""
        rows = self.of["name"]
        return {
            (int(row["scope"]), int(row["id"])): self.text(row["text"])
            for row in rows[rows["kind"] == kind]
        }

    def _ended(self, row: Any) -> Ended:
        label = self.labels[int(row["name"])]
        domain, category = int(label["domain"]), int(label["category"])
        return Ended(
            name=self.text(label["text"]),
            domain=self.names(DOMAIN).get((0, domain), "") if domain else "0",
            category=self.names(CATEGORY).get((domain, category), str(category or "")),
            kind=int(row["kind"]),
            path=self.path_of(int(row["node"])),
            start=int(row["start"]),
            end=int(row["end"]),
            threads=(int(row["tid"]), int(row["end_tid"])),
            color=int(row["color"]),
            payload=(int(row["payload_type"]), int(row["payload"])),
            json=self.text(row["payload_text"]),
        )


def recorded(folder: Path) -> list[Recorded]:
    """All dumps of a folder, in the order in which their processes began to record."""
    dumps = sorted(folder.glob("*.fdump"), key=lambda path: path.name.split("-")[1])
    return [Recorded(path) for path in dumps]


def only(folder: Path) -> Recorded:
    """The only dump of a folder."""
    (dump,) = recorded(folder)
    return dump
