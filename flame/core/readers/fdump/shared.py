"""What several dumps are spelled with: frames, stacks, and who and what was recorded."""

from __future__ import annotations

from flame.core.model.frames import FrameBuilder
from flame.core.model.launches import LaunchConfig
from flame.core.model.meta import Device, Process, Thread
from flame.core.model.stacks import StackBuilder


class Shared:
    """The vocabulary of one or more dumps; index columns are indices into its lists.

    ``source`` of a process or device is its dump's number. Names may come late: then the entry is
    replaced by one with the name.
    """

    def __init__(self) -> None:
        self.frames = FrameBuilder()
        self.stacks = StackBuilder()
        self.processes: list[Process] = []
        self.threads: list[Thread] = []
        self.devices: list[Device] = []
        self.configs: list[LaunchConfig] = []
        self._configs: dict[LaunchConfig, int] = {}

    def config(self, config: LaunchConfig) -> int:
        """The index of a launch configuration, new or known."""
        index = self._configs.setdefault(config, len(self.configs))
        if index == len(self.configs):
            self.configs.append(config)
        return index
