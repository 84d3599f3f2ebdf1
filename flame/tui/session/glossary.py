"""Explain every word on the screens, each in a line: for the help, the dialogs, the manual."""

from __future__ import annotations

from typing import NamedTuple

from flame.core.analysis.words.formats import NVTX, Terms, reworded

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
            Entry("GPU time", "durations of all work on GPUs, summed, side by side or not"),
            Entry("exposed time", "time a GPU was busy, each moment charged to one activity"),
            Entry("GPU activities", "how many kernels, copies, sets and graphs ran on GPUs"),
            Entry("launch API time", "how long the CUDA calls took that launched the work"),
            Entry("queue delay", "how long work waited from the end of its launch to its start"),
            Entry("GPU idle before", "how long the GPU was empty just before the work started"),
            Entry("GPU waiting", "time a GPU was idle, by what the CPU did that launched next"),
            Entry("host self time", "wall time of CPU threads, of each frame without those below"),
            Entry("PC samples", "how often a warp was seen at an instruction of a kernel"),
            Entry("collective wait", "how long collectives waited for the last rank to come"),
            Entry("FLOPs", "what matrix products, convolutions and attention computed"),
            Entry("bytes moved", "bytes that these read and wrote at least"),
            Entry("time above bound", "time these took beyond what the peaks allow"),
            Entry(
                "memory at the peak", "bytes that were in use when the most were in use at a time"
            ),
            Entry("live memory", "bytes that are in use at the end of what is shown"),
            Entry("allocated memory", "bytes that were allocated, however short they were in use"),
            Entry("memory given back", "bytes that were allocated and given back again"),
            Entry("memory held", "bytes that were in use, as a mean over the time that is shown"),
        ),
    ),
    (
        "Numbers",
        (
            Entry("total", "the metric of the frame and of all below it"),
            Entry("self", "what is left of the total without the frames below"),
            Entry("%", "share of all that is shown"),
            Entry("of all", "share of all that is shown, whatever is zoomed"),
            Entry("of parent", "share of the frame above"),
            Entry("of zoomed", "share of the part that is zoomed"),
            Entry("of window", "share of a GPU's time in which it ran this, on any stream"),
            Entry("of total", "share of the frame's own total"),
            Entry("count", "how many activities belong to the frame; also written 61×"),
            Entry("mean", "total divided by count; over ranks: by their number"),
            Entry("p50", "the median: half of the activities took no longer"),
            Entry("p95", "95 % of the activities took no longer; of ranks: have no more"),
            Entry("p99", "99 % of the activities took no longer"),
            Entry("max", "the longest activity; over ranks: the most that one has"),
            Entry("tail", "p99 divided by p50: far above 1, a few take very long"),
            Entry("slow ones", "few among equals, or so many that the work is mixed"),
            Entry("finding", "what the report says of it: ! shows all"),
            Entry("max/min", "the largest GPU or file of a row divided by the smallest"),
            Entry("each", "of activities one by one, not summed"),
            Entry("log scale", "steps of the histogram grow by a factor"),
            Entry("all the same", "every activity took exactly as long"),
            Entry("places", "where the name stands in the tree, and their sum"),
            Entry("all places", "summed over all places where the name stands in the tree"),
            Entry("latest", "only these are at hand: a long recording drops older ones"),
            Entry("name", "the name in full, where it is cut above"),
        ),
    ),
    (
        "Frames",
        (
            Entry("frame", "a rectangle of the icicle: one entry of a stack"),
            Entry("root", "all that is shown"),
            Entry("process", "the process that launched the work"),
            Entry("thread", "the CPU thread that launched the work"),
            Entry("device", "a GPU"),
            Entry("stream", "a queue of work on a GPU, one after the other"),
            Entry("rank", "a process of a distributed job, or the file that it wrote"),
            Entry("python", "a Python function that was running at the launch"),
            Entry("native", "a C or C++ function that was running at the launch"),
            Entry("launch", "the CUDA call that launched the work"),
            Entry("nvtx", "a range that the program marked by NVTX, open at the launch"),
            Entry("range", "a named part of the program, open at the launch"),
            Entry("operator", "a PyTorch operator or record_function block at the launch"),
            Entry("scope", "a named part of a program that Proton measured"),
            Entry("module", "an nn.Module; of a native function its library"),
            Entry("shapes", "sizes of the tensors that an operator was given"),
            Entry("kernel", "a function that ran on a GPU"),
            Entry("memcpy", "a copy: HtoD to the GPU, DtoH from it, DtoD within"),
            Entry("memset", "memory of a GPU that is filled with a value"),
            Entry("graph", "a CUDA graph whose kernels were not recorded one by one"),
            Entry("phase", "what work was for: --phases, ranges, else what it computes"),
            Entry("category", "what a kernel computes; or the class of a range"),
            Entry("cause", "what passed while a GPU was idle and waited for its next work"),
            Entry("pool", "where PyTorch's allocator has memory from: private, of all"),
            Entry("sass", "an instruction of a kernel"),
            Entry("stall", "why a warp did not go on at an instruction"),
            Entry("wait", "a part of a collective of ranks: one of the next two"),
            Entry("[waiting]", "the rank was there, and the last rank was not"),
            Entry("[transfer]", "what the collective took when all ranks were there"),
            Entry("stack", "a stack as the file has it, of any kind of frames"),
            Entry("nested", "Python frames and ranges together, as nested in time"),
            Entry("rest", "siblings below the minimum share, merged"),
            Entry("source", "file and line where the function is written"),
            Entry("narrow", "under two cells wide: ░ holds several, enter zooms in"),
            Entry("joined", "frames that hand on nearly all they hold are one row"),
            Entry("heaviest below", "the frames right below, the largest first"),
            Entry("heaviest above", "the frames right above, at all places of the name"),
            Entry("heaviest shapes", "those the operator was called with, the largest first"),
            Entry("callers", "what stands above the frame at all its places"),
            Entry("callees", "what stands below the frame at all its places"),
            Entry("names", "they differ only in numbers and are shown as one, step *"),
            Entry("↻", "before a range that was open when a CUDA graph was captured"),
        ),
    ),
    (
        "Comparisons",
        (
            Entry("BASE", "what it was: the trace named first"),
            Entry("NEW", "what it is: the trace named second"),
            Entry("basis", "what values are divided by: steps, seconds, activities, all"),
            Entry("Δ", "what NEW has more than BASE; ×12: twelve times BASE"),
            Entry("by count", "what more or fewer activities as long as BASE's take"),
            Entry("by duration", "what NEW's activities take longer or shorter each"),
            Entry("▲ ▼", "has grown, has shrunk: by 5 % and 0.5 % of all, or V: at all"),
            Entry("+", "only in NEW"),
            Entry("−", "only in BASE"),
        ),
    ),
    (
        "Ranks together",
        (
            Entry("this rank", "what the rank has of the frame that is shown alone"),
            Entry("median", "half of the ranks have no more; those that lack it have 0"),
            Entry("min", "the least that a rank has"),
            Entry("worst", "the rank with the most, of several the lowest"),
            Entry("imbal.", "how far the worst is above the median, or how many have it"),
            Entry("there", "how many of the ranks have the frame at all"),
            Entry("known", "share that is known by rank: small parts were left out"),
            Entry("by imbalance", "colour: how far the farthest rank is from the median"),
            Entry("late", "ranks that others wait for in collectives, beyond chance"),
            Entry("lost", "files of ranks that could not be read"),
            Entry("own work", "what the GPU did for a step besides communication"),
            Entry("step time", "how long a step took on the host"),
            Entry("wait in collectives", "what they took longer than on the last rank to come"),
            Entry("work between collectives", "what the GPU did from one collective to the next"),
            Entry("in all", "the sum over the steps of the run"),
            Entry("off", "how far from the median of ranks; waits: as part of the step"),
            Entry("caused", "how long others waited for the rank that was last; !: late"),
            Entry("others wait", "how long others waited for the rank, and why it was late"),
            Entry("waits", "how long the rank waited itself"),
            Entry("clock", "how far it is behind, told by the ends of collectives"),
            Entry("by step", "whether waiting is known of each step"),
        ),
    ),
    (
        "GPUs over time",
        (
            Entry("busy", "share of its time in which anything ran on a GPU"),
            Entry("GPU busy", "busy along time: a cell is as full as the GPUs were busy"),
            Entry("idle", "time in which nothing ran on a GPU"),
            Entry("idle gap", "a stretch between activities in which the GPU ran nothing"),
            Entry("longest idle gaps", "how long, when, and what ran before → after"),
            Entry("copies alone", "copies ran, and no kernel beside them"),
            Entry("queued", "how long each waited from the end of its launch to its start"),
            Entry("coverage", "share of GPU time that has a launch, ranges, frames"),
            Entry("innermost", "each activity counts for the closest one at its launch"),
            Entry("kernels", "what ran on GPUs but for copies and sets"),
            Entry("modules", "nn.Modules by what they launched themselves"),
            Entry("layers", "modules or ranges by what they launched themselves"),
            Entry("functions", "Python functions by what they launched themselves"),
            Entry("communication", "kernels that move data between GPUs, such as NCCL's"),
            Entry("copies", "copies and sets of memory, and the bytes that they moved"),
            Entry("causes", "what the GPU's next work waited for in a gap, and how long"),
            Entry("API calls", "CUDA calls of a thread; red ones wait for the GPU"),
            Entry("GC", "garbage collection: Python looked for objects to free"),
            Entry("GIL", "the lock of Python: a thread holds it, or waits for it (red)"),
            Entry("loading", "libraries and kernels were loaded"),
            Entry("Python", "the innermost Python function of a thread"),
            Entry("host", "the CPU: who launched what came after the gap, and when"),
            Entry("between", "what ran on the GPU before and after a gap"),
            Entry("outside any", "the part of a gap that lies in none of them"),
            Entry("others", "what is not named one by one"),
            Entry("brush", "a window of time that is being chosen"),
            Entry("filtered out", "left out by filters, and drawn faintly here alone"),
        ),
    ),
    (
        "Causes of idle time (hatching)",
        (
            Entry("host code", "before the launch, in no API call: Python, loading data (//)"),
            Entry("garbage collection", "of that, while the thread collected garbage (gg)"),
            Entry("waiting for the GIL", "of that, while it waited for Python's lock (~~)"),
            Entry("launch call", "in a call that launched something else (^^)"),
            Entry("copy call", "in a call that copies or sets memory (oo)"),
            Entry("sync", "in a call that waits for the GPU, which was idle (\\\\)"),
            Entry("alloc", "in a call that allocates or frees memory (&&)"),
            Entry("other call", "in any other API call (--)"),
            Entry("in launch", "in the call that launched what ran next (>>)"),
            Entry("after launch", "it was launched, and had not begun (,,)"),
            Entry("profiler", "the profiler held the program up (xx)"),
            Entry("unknown", "no launch was recorded of what ran next (??)"),
        ),
    ),
    (
        "Launches",
        (
            Entry("grid", "number of thread blocks of a launch"),
            Entry("block", "number of threads in each block"),
            Entry("cluster", "blocks that run together and can share memory"),
            Entry("registers", "registers per thread: the more, the fewer threads at once"),
            Entry("shared", "on-chip memory per block, static or asked for at launch"),
            Entry("local", "memory per thread for what has no room in registers"),
            Entry("ways", "how often it was launched with which grid and block"),
            Entry("moved", "bytes that were copied or set, and how fast"),
            Entry("files", "the files of the trace it ran in, by share"),
            Entry("processes", "the processes that launched it, by share"),
            Entry("threads", "the threads that launched it, by share"),
            Entry("GPUs", "the GPUs it ran on, by share"),
            Entry("streams", "the streams it ran on, by share"),
            Entry("samples", "PC samples, of these launches or of all of the kernel"),
            Entry("hottest", "the instruction with the most samples"),
            Entry("SM active", "how much of the SMs had any warp, while its kernels ran"),
            Entry("SM", "the same in the table"),
            Entry("tensor", "how much of the time tensor cores computed, while they ran"),
            Entry("DRAM", "how much of the memory's bandwidth was used, while they ran"),
            Entry("sampled", "how much of that time samples tell of; *: beside others"),
            Entry("traffic", "what memory moved, by what operators read and write at least"),
            Entry("× bytes", "how many times the bytes that were counted memory moved"),
            Entry("domain", "the library or part of a program that marked the range"),
            Entry("detail", "what was taken out of the name, such as ids"),
            Entry("payload", "values that the program gave to the range, some of them"),
            Entry("placed", "how the range was found where launches do not say it"),
            Entry("open", "when the range was open: not at the launch, but at capture"),
            Entry("demangled", "the C++ name in full"),
            Entry("mangled", "the name as the compiler writes it"),
        ),
    ),
    (
        "Work of operators",
        (
            Entry("work", "what operators with a formula compute, and move at least"),
            Entry("rate", "both by the time of their kernels alone"),
            Entry("intensity", "how many FLOPs per byte; from the ridge on compute bounds"),
            Entry("of peak", "how near their kernels came to what the GPU can do"),
            Entry("TFLOP/s", "how fast operators computed, by their kernels' time"),
            Entry("% peak", "of the peak of compute for their types, weighted by time"),
            Entry("% bandw.", "of the memory's bandwidth, at least"),
            Entry("% bound", "what perfect kernels would need by what these took"),
            Entry("rated", "part of the kernels' time that these shares are of"),
            Entry("above bound", "time that perfect kernels would not have needed"),
            Entry("causal", "time of attention with a mask, which halves its work"),
            Entry("GPU peak", "what the shares are of, and who says so"),
            Entry("verdict", "compute- or bandwidth-bound: 60 % or more of that peak"),
            Entry("by efficiency", "frames have five colours by % of bound, grey: unknown"),
            Entry("work by shapes", "operators by their shapes, most time first"),
        ),
    ),
    (
        "Memory",
        (
            Entry("shown", "the moment of the picture: --at, or enter in the timeline"),
            Entry("allocations", "how many there are, and how large; sizes as asked for"),
            Entry("sizes", "bytes of each: half, 95 % are no larger; the largest"),
            Entry("lifetimes", "how long they lived; unknown: begin or end not recorded"),
            Entry("from before", "of what is shown, allocated before the recording"),
            Entry("alive", "of what is shown, not given back by the end"),
            Entry("may leak", "grows from step to step: see docs/memory.md"),
            Entry("peak", "the most that lived at a time on this GPU"),
            Entry("at the end", "what lives when the recording ends"),
            Entry("reserved", "what the allocator has got from the driver: five parts"),
            Entry("requested", "what the program asked for"),
            Entry("rounding", "what blocks are larger than was asked for"),
            Entry("pending", "given back, but another stream may still use it"),
            Entry("split", "free, but in segments in use: it cannot go back to the driver"),
            Entry("releasable", "free: torch.cuda.empty_cache() returns it"),
            Entry("failed", "requests for memory that could not be met, and why"),
            Entry("at", "the moment of which memory is shown"),
        ),
    ),
    (
        "What is chosen",
        (
            Entry("metric", "what widths and sums measure; m chooses"),
            Entry("level", "one kind of frame in the stacks; L chooses them"),
            Entry("inverted", "leaves first, callers below them"),
            Entry("recursion collapsed", "a frame right below itself is one"),
            Entry("by weight", "siblings: widest first"),
            Entry("by name", "siblings in the order of their names"),
            Entry("by start", "siblings in the order in which they first started"),
            Entry("layers folded", "model.layers.0, .1, … are one: model.layers.*"),
            Entry("numbers folded", "names that differ only in numbers are one: step *"),
            Entry("base names", "kernels without template arguments: several may share one"),
            Entry("demangled names", "kernels with all template arguments and parameters"),
            Entry("mangled names", "kernels as the compiler writes them"),
            Entry("by category", "kernels have the colour of what they compute"),
            Entry("forward", "backward work stands below its forward operator"),
            Entry("time", "only what started in this window of time"),
            Entry("steps", "iterations of the program; as a filter: launched in these"),
            Entry("NVTX", "only what was launched inside this range"),
            Entry("in", "only what was launched inside this range"),
            Entry("kinds", "only these kinds of activity"),
            Entry("only stacks with", "only stacks that have such a frame"),
            Entry("without", "only stacks that have no such frame"),
            Entry("from", "only stacks that have such a frame, from it on"),
            Entry("hide", "without such frames; what is below them stays"),
            Entry("≥", "smaller siblings are merged into one"),
            Entry("match", "a frame whose name the search finds"),
            Entry("unzoomed", "the table has all, though the icicle is zoomed"),
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
