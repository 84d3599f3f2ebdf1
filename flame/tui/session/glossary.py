"""Explain every word on the screens, each in a line: for the help, the dialogs, the manual."""

from __future__ import annotations

from typing import NamedTuple

from flame.core.analysis.wording import NVTX, Terms, reworded

WORDS = "Words"
"""Begins the title of each section in the help."""


class Entry(NamedTuple):
    """Explain ``word`` by ``meaning``."""

    word: str
    meaning: str


GLOSSARY: tuple[tuple[str, tuple[Entry, ...]], ...] = (
    (
        "Metrics",
        (
            Entry("GPU time", "how long kernels, copies and sets ran, summed: also at one time"),
            Entry("GPU activities", "how many kernels, copies, sets and graphs ran on a GPU"),
            Entry("launch API time", "how long the CUDA calls took that launched the work"),
            Entry("queue delay", "from the end of a launch to the start of its work on the GPU"),
            Entry("GPU idle before", "how long the GPU had been empty when the work started"),
            Entry("host self time", "wall time of CPU threads, each piece where it was spent"),
            Entry("PC samples", "how often a warp was seen at an instruction of a kernel"),
        ),
    ),
    (
        "Numbers",
        (
            Entry("total", "the metric of the frame and of all below it"),
            Entry("self", "the part of the total that belongs to nothing below the frame"),
            Entry("%", "share of the total of all that is shown"),
            Entry("of all", "share of everything that is shown, whatever is zoomed"),
            Entry("of parent", "share of the frame above"),
            Entry("of zoomed", "share of the part that is zoomed"),
            Entry("of total", "share of the frame's own total"),
            Entry("count", "number of GPU activities at or below the frame; also 61×"),
            Entry("mean", "total divided by count"),
            Entry("p50", "half of the activities took no longer: the median"),
            Entry("p95", "95 of 100 activities took no longer"),
            Entry("p99", "99 of 100 activities took no longer"),
            Entry("max", "the longest activity"),
            Entry("tail", "p99 divided by p50: far above 1, few take much longer than most"),
            Entry("max/min", "the largest of the GPUs or files, divided by the smallest"),
            Entry("each", "of single activities: how they differ, as a histogram"),
            Entry("log scale", "the steps of the histogram grow by factors, not by sums"),
            Entry("places", "where a name stands in the tree; with several, their sum"),
            Entry("all places", "wherever the name stands in the tree, taken together"),
            Entry("latest", "only the last activities of a long recording are kept one by one"),
            Entry("name", "the name of the frame, in full where it is cut above"),
        ),
    ),
    (
        "Frames",
        (
            Entry("frame", "one rectangle of the icicle: an entry of a stack"),
            Entry("root", "everything that is shown, called all"),
            Entry("process", "the process that launched the work"),
            Entry("thread", "the CPU thread that launched the work"),
            Entry("device", "a GPU"),
            Entry("stream", "a queue of work on a GPU, one after the other"),
            Entry("rank", "one process of a distributed job, or the file it comes from"),
            Entry("python", "a Python function that was running at the launch"),
            Entry("native", "a C or C++ function that was running at the launch"),
            Entry("launch", "the CUDA call that launched the work"),
            Entry("nvtx", "a range that the program marked by NVTX around the launch"),
            Entry("range", "a part of a program that it gave a name to, open at the launch"),
            Entry("operator", "a PyTorch operator, or block of record_function, around the launch"),
            Entry("scope", "a named part of a program that Proton measured"),
            Entry("module", "an nn.Module; of a native function its library"),
            Entry("shapes", "sizes of the tensors that the operator was given"),
            Entry("kernel", "a function that ran on a GPU"),
            Entry("memcpy", "a copy between memories: HtoD to the GPU, DtoH from it, DtoD in it"),
            Entry("memset", "filling memory of a GPU with a value"),
            Entry("graph", "a CUDA graph, launched as a whole; its kernels were not recorded"),
            Entry("category", "what a kernel computes, by its name; or a class of an NVTX range"),
            Entry("sass", "an instruction of a kernel"),
            Entry("stall", "why a warp did not go on at an instruction"),
            Entry("stack", "a stack as the file has it, of any kind of frames"),
            Entry("nested", "Python frames and ranges in one stack, as they were open in time"),
            Entry("rest", "siblings merged because each is below the minimum share"),
            Entry("source", "file and line where the function is written"),
            Entry("narrow", "too narrow to draw by itself: ░ holds several, enter zooms into them"),
            Entry("joined", "frames that hand all on to the next are one row; E opens it"),
            Entry("heaviest below", "the frames right below, largest first"),
            Entry("heaviest above", "the frames right above, at all places of the name"),
            Entry("callers", "what stands above a frame, at all its places: the sandwich's top"),
            Entry("callees", "what stands below a frame, at all its places"),
            Entry("names", "those that differ only in numbers, shown as one: step *"),
            Entry("↻", "before a range: open when the CUDA graph was captured"),
        ),
    ),
    (
        "GPUs over time",
        (
            Entry("busy", "share of the time in which anything ran on the GPU, on any stream"),
            Entry("GPU busy", "the same along time: each cell is filled by its share"),
            Entry("idle", "the time in which nothing ran on the GPU"),
            Entry("idle gap", "a stretch between activities in which the GPU ran nothing"),
            Entry("longest idle gaps", "how long, when, and what ran before → after"),
            Entry("copies alone", "busy with copies while no kernel ran"),
            Entry("queued", "how long the work waited on the GPU after its launch returned"),
            Entry("coverage", "share of GPU time of which the launch, ranges, frames are known"),
            Entry("innermost", "each activity counts for the closest one around its launch"),
            Entry("kernels", "what ran on GPUs, but for copies and sets"),
            Entry("modules", "nn.Modules, each with what it launched itself"),
            Entry("layers", "modules, or else ranges, each with what it launched itself"),
            Entry("functions", "Python functions, each with what it launched itself"),
            Entry("communication", "kernels that move data between GPUs: NCCL and its like"),
            Entry("copies", "copies and sets of memory, and how many bytes they moved"),
            Entry("API calls", "CUDA calls of the thread; those that wait for the GPU are red"),
            Entry("host", "the CPU side: which thread launched what ran after a gap, and when"),
            Entry("between", "what ran on the GPU before and after a gap"),
            Entry("outside any", "the part of a gap in which the thread was in none of these"),
            Entry("brush", "a window of time that is being chosen; enter filters by it"),
            Entry("filtered out", "drawn faintly: filters leave it out elsewhere"),
        ),
    ),
    (
        "Launches",
        (
            Entry("grid", "how many blocks of threads a kernel was launched with"),
            Entry("block", "how many threads each of its blocks had"),
            Entry("cluster", "blocks that run together and share their memory"),
            Entry("registers", "registers of each thread: the more, the fewer threads fit"),
            Entry(
                "shared", "on-chip memory of each block; static: compiled in, dynamic: asked for"
            ),
            Entry("local", "memory of each thread for what its registers cannot hold"),
            Entry("ways", "different sizes that the same kernel was launched with"),
            Entry("moved", "bytes that were copied or set, and per second"),
            Entry("files", "the files of the trace it ran in, by share"),
            Entry("processes", "the processes that launched it, by share"),
            Entry("threads", "the threads that launched it, by share"),
            Entry("GPUs", "the GPUs it ran on, by share"),
            Entry("streams", "the streams it ran on, by share"),
            Entry("samples", "PC samples of it: of these launches, or of all of the kernel"),
            Entry("hottest", "the instruction with the most samples"),
            Entry("domain", "the library or part of a program that an NVTX range belongs to"),
            Entry("detail", "what was taken out of a name, such as ids, to make it one"),
            Entry("payload", "values that the program gave to an NVTX range: some examples"),
            Entry("placed", "how a range was matched to the launch, where that is not plain"),
            Entry("open", "when the range was open: at capture of the graph, not at launch"),
            Entry("demangled", "the C++ name in full, with template arguments"),
            Entry("mangled", "the name as the compiler writes it"),
        ),
    ),
    (
        "What is chosen",
        (
            Entry("metric", "what widths and sums measure; m chooses"),
            Entry("level", "one kind of frame in the stacks; L chooses which, in which order"),
            Entry("inverted", "leaves first, callers below them"),
            Entry("recursion collapsed", "a frame right below itself is one"),
            Entry("by weight", "siblings: widest first"),
            Entry("by name", "siblings in the order of their names"),
            Entry("by start", "siblings in the order in which they first started"),
            Entry("layers folded", "model.layers.0, .1, … are one: model.layers.*"),
            Entry("numbers folded", "names that differ only in numbers are one: step *"),
            Entry("base names", "kernels without template arguments; different ones may merge"),
            Entry("demangled names", "kernels with all template arguments"),
            Entry("mangled names", "kernels as the compiler writes them"),
            Entry("by category", "kernels have the colour of what they compute"),
            Entry("forward", "backward work stands below the forward operator that caused it"),
            Entry("time", "only what started in this window of time"),
            Entry("steps", "only what was launched in these steps of the PyTorch profiler"),
            Entry("NVTX", "only what was launched inside this range"),
            Entry("in", "only what was launched inside this operator or scope"),
            Entry("kinds", "only these kinds of activity"),
            Entry("only stacks with", "only what has such a frame above it, or is one"),
            Entry("without", "only what has no such frame above it, nor is one"),
            Entry("from", "stacks begin at such a frame"),
            Entry("hide", "such frames are left out, what is below them stays"),
            Entry("≥", "smaller siblings are merged into one"),
            Entry("match", "a frame whose name the search finds"),
            Entry("unzoomed", "the table is of everything, also where the icicle is zoomed"),
        ),
    ),
)
"""By section, in the order of the help."""

_OF_RANGES = ("range", "nvtx", "operator", "scope")
"""What ranges are called: of these a trace has its own."""


def words_of(terms: Terms) -> list[tuple[str, list[Entry]]]:
    """Return the sections with their entries, in the words of a trace."""
    others = {*_OF_RANGES, "NVTX", "in"} - {terms.kind, "NVTX" if terms is NVTX else "in"}
    return [
        (
            f"{WORDS}: {title}",
            [
                Entry(word, meaning if word in _OF_RANGES else reworded(meaning, terms))
                for word, meaning in entries
                if word not in others
            ],
        )
        for title, entries in GLOSSARY
    ]


_MEANINGS = {entry.word: entry.meaning for _, entries in GLOSSARY for entry in entries}


def meaning_of(word: str) -> str:
    """Return what ``word`` means; empty where nothing is said of it."""
    return _MEANINGS.get(word, "")
