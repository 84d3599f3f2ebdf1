"""Hold what an app starts with beside its trace: what is remembered, and what the terminal says."""

from __future__ import annotations

from dataclasses import field, replace

from flame.console.background_colour import TerminalBackground
from flame.core.lazy_dataclass import dataclass
from flame.options.config import Config
from flame.options.preferences import Memory, Preferences


@dataclass(frozen=True)
class Start:
    """Bring the user's ``memory``, and of what is in it those settings that nothing overrules."""

    memory: Memory = field(default_factory=Memory)
    recalled: Preferences = field(default_factory=Preferences)
    background: TerminalBackground = field(default_factory=TerminalBackground)

    def look(self, config: Config) -> Config:
        """Return ``config`` with the theme and the details pane that are remembered."""
        theme, details = self.recalled.theme, self.recalled.details
        return replace(
            config,
            theme=config.theme if theme is None else theme,
            details=config.details if details is None else details,
        )
