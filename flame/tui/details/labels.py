"""Name every label and title of the pane, and write them: a click explains one in the help."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from flame.tui.shell.actions import Action
from flame.tui.toolkit.fields import LABEL, labelled
from flame.tui.toolkit.lines import Line, Piece
from flame.tui.toolkit.text import cut_start, printable, wrap

_LINES = 4


class Label(StrEnum):
    """Name what stands before a value or above a list; the glossary explains each."""

    # Weights
    SOURCE = "source"
    TOTAL = "total"
    OF_ALL = "of all"
    SELF = "self"
    OF_TOTAL = "of total"
    OF_PARENT = "of parent"
    OF_ZOOMED = "of zoomed"
    OF_WINDOW = "of window"
    COUNT = "count"
    MEAN = "mean"
    PLACES = "places"
    # Single activities
    EACH = "each"
    ALL_PLACES = "all places"
    LATEST = "latest"
    TAIL = "tail"
    P50 = "p50"
    P95 = "p95"
    P99 = "p99"
    MAX = "max"
    LOG_SCALE = "log scale"
    SAME = "all the same"
    QUEUED = "queued"
    SLOW = "slow ones"
    FINDING = "finding"
    # Around the frame
    NARROW = "narrow"
    JOINED = "joined"
    BELOW = "heaviest below"
    ABOVE = "heaviest above"
    HEAVIEST_SHAPES = "heaviest shapes"
    NAMES = "names"
    FILES = "files"
    PROCESSES = "processes"
    THREADS = "threads"
    GPUS = "GPUs"
    STREAMS = "streams"
    # What the trace says of it
    OPEN = "open"
    MODULE = "module"
    DOMAIN = "domain"
    CATEGORY = "category"
    SHAPES = "shapes"
    DETAIL = "detail"
    PLACED = "placed"
    NAME = "name"
    DEMANGLED = "demangled"
    MANGLED = "mangled"
    PAYLOAD = "payload"
    # Launches and copies
    LAUNCH = "launch"
    WAYS = "ways"
    GRID = "grid"
    BLOCK = "block"
    CLUSTER = "cluster"
    REGISTERS = "registers"
    SHARED = "shared"
    LOCAL = "local"
    MOVED = "moved"
    # PC samples
    KERNEL = "kernel"
    SAMPLES = "samples"
    HOTTEST = "hottest"
    # Work of operators
    WORK = "work"
    RATE = "rate"
    INTENSITY = "intensity"
    OF_PEAK = "of peak"
    WASTE = "above bound"
    CAUSAL = "causal"
    GPU_PEAK = "GPU peak"
    VERDICT = "verdict"
    BY_SHAPES = "work by shapes"
    # GPU metrics
    SM = "SM active"
    TENSOR = "tensor"
    DRAM = "DRAM"
    SAMPLED = "sampled"
    TRAFFIC = "traffic"
    # All that is shown
    BUSY = "busy"
    IDLE = "idle"
    COPIES_ALONE = "copies alone"
    STEPS = "steps"
    KERNELS = "kernels"
    LAYERS = "layers"
    MODULES = "modules"
    FUNCTIONS = "functions"
    COMMUNICATION = "communication"
    COPIES = "copies"
    INNERMOST = "innermost"
    GAPS = "longest idle gaps"
    COVERAGE = "coverage"
    # Memory
    SHOWN = "shown"
    ALLOCATIONS = "allocations"
    SIZES = "sizes"
    LIFETIMES = "lifetimes"
    FROM_BEFORE = "from before"
    ALIVE = "alive"
    GROWTH = "may leak"
    PEAK = "peak"
    AT_END = "at the end"
    RESERVED = "reserved"
    REQUESTED = "requested"
    ROUNDING = "rounding"
    PENDING = "pending"
    SPLIT = "split"
    RELEASABLE = "releasable"
    FAILED = "failed"


def fields(rows: Iterable[tuple[Label, str]], width: int) -> list[Line]:
    """Write labels and values side by side; without those that have no value, long ones wrapped."""
    lines: list[Line] = []
    for label, value in rows:
        lines += listed(label, wrap(printable(value), max(width - LABEL, 8), _LINES))
    return lines


def listed(label: Label, texts: Iterable[str], before: str = "") -> list[Line]:
    """Write ``texts`` one below the other, ``label`` beside the first, ``before`` it a number."""
    first, *rest = labelled(f"{before} {label}".lstrip(), texts) or [[]]
    return [[explained(piece, label) for piece in first[:1]] + first[1:], *rest] if first else []


def titled(label: Label, width: int, text: str = "") -> Line:
    """Write ``label`` as a title; ``text`` has it in it where there is more to say."""
    return [explained(Piece(cut_start(text or str(label), width), "dim"), label)]


def explained(piece: Piece, label: Label) -> Piece:
    """Have a click on ``piece`` explain ``label`` in the help."""
    return piece._replace(action=Action.WORDS.click(label))
