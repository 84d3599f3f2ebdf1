"""What flame is to reach, beside what version 0.1 needed on the same files before any of it."""

from __future__ import annotations

from typing import NamedTuple


class Goal(NamedTuple):
    """A bound on the figure of a row."""

    row: str
    sense: str
    """≤ or ≥."""
    bound: float
    unit: str
    before: str

    @property
    def text(self) -> str:
        """The bound, for a reader."""
        return f"{self.sense} {self.bound:g} {self.unit}"

    def verdict(self, figure: float) -> str:
        """Whether ``figure`` reaches it, as far as it is shown."""
        is_met = figure <= self.bound if self.sense == "≤" else figure >= self.bound
        return "met" if is_met else "missed"


LIMIT, FILE, PICKLE = "x SQL limit", "x file", "x pickle.load"
GOALS = (
    Goal("load, 1M kernels", "≤", 1.5, LIMIT, "7.9"),
    Goal("load, 10M kernels", "≤", 1.4, LIMIT, "7.0"),
    Goal("load, 1M kernels: peak memory", "≤", 1.0, FILE, "1.85"),
    Goal("load, 10M kernels: peak memory", "≤", 0.8, FILE, "1.62"),
    Goal("load, 1M-unique kernels", "≤", 2, LIMIT, "10"),
    Goal("load, 1M-chains kernels", "≤", 2, LIMIT, "8"),
    Goal("load, 100k kernels: CPU", "≤", 0.5, "s", "1.27"),
    Goal("open again, 1M kernels: CPU", "≤", 0.5, "s", "as the first"),
    Goal("open again, 1M kernels", "≤", 0.5, LIMIT, "as the first"),
    Goal("open again, 10M kernels: CPU", "≤", 0.5, "s", "as the first"),
    Goal("start, --version: CPU", "≤", 2.5, "x python", "4.3"),
    Goal("start, --print of a small sample: CPU", "≤", 0.2, "s", "0.36"),
    Goal("NVIDIA nvtx_kern_sum, 1M kernels", "≥", 40, "x flame", "9"),
    Goal("nsys2json, 1M kernels", "≥", 60, "x flame", "14"),
    Goal("nsys-ai from nothing, 1M kernels", "≥", 12, "x flame", "2.6"),
    Goal("nsys-ai from its cache, 1M kernels", "≥", 1.2, "x flame again", "0.05"),
    Goal("PyTorch trace of 100 MiB, flame", "≤", 0.4, "x json.load", "0.47"),
    Goal("HTA, PyTorch trace of 100 MiB", "≥", 25, "x flame", "21.6"),
    Goal("cursor, 1M nodes: first byte", "≤", 8, "ms", "7 to 16"),
    Goal("cursor, 1M nodes: sent", "≤", 2, "kB", "4.6 to 8.3"),
    Goal("held key, 1M nodes: sent", "≤", 0.6, "kB", "4.6 to 8.3"),
    Goal("zoom, 1M nodes: first byte", "≤", 20, "ms", "10 to 20"),
    Goal("zoom, 1M nodes: sent", "≤", 10, "kB", "5.5 to 11.6"),
    Goal("any other key, 1M nodes: sent", "≤", 40, "kB", "up to 109"),
    Goal("cursor, 250k + 250k nodes: first byte", "≤", 8, "ms", "none"),
    Goal("cursor, 250k + 250k nodes: sent", "≤", 2, "kB", "none"),
    Goal("held key, 250k + 250k nodes: sent", "≤", 0.6, "kB", "none"),
    Goal("zoom, 250k + 250k nodes: first byte", "≤", 20, "ms", "none"),
    Goal("zoom, 250k + 250k nodes: sent", "≤", 10, "kB", "none"),
    Goal("any other key, 250k + 250k nodes: sent", "≤", 40, "kB", "none"),
    Goal("kept base, 1M kernels: size", "≤", 1, "MB", "none"),
    Goal("pivot, 1M kernels", "≤", 100, "ms", "84 to 120"),
    Goal("pivot, 1M names", "≤", 400, "ms", "700 to 1,700"),
    Goal("live, 50,000 launches/s", "≤", 25, "% of a core", "18 to 20"),
    Goal("merge, 1,024 ranks: CPU", "≤", 1, "ms a rank", "none"),
    Goal("merge, 1,024 of 256 ranks", "≤", 5, "x", "none"),
    Goal("summary, 256 ranks", "≤", 4, "kB a rank", "none"),
    Goal("flame view of 4,096 ranks: peak memory", "≤", 300, "MB", "none"),
    Goal("snapshot of 100 MB, flame info", "≤", 4, PICKLE, "7"),
    Goal("snapshot of 100 MB, flame info: peak memory", "≤", 2, PICKLE, "1.7"),
    Goal("snapshot of 100 MB, flame view --print", "≤", 4, PICKLE, "none"),
    Goal("snapshot of 100 MB, flame view --print: peak memory", "≤", 2, PICKLE, "none"),
    Goal("launch below 30 Python frames", "≤", 300, "ns more", "455"),
)
