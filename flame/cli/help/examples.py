"""Hold the command lines that ``--help`` and the man pages begin with."""

from __future__ import annotations

EXAMPLES = {
    "record": (
        ("flame record python train.py", "into train.flame, one dump per process"),
        ("flame record -o run.flame --pc continuous -- ./app --fast", "with PC samples"),
    ),
    "view": (
        ("flame view trace.sqlite", "open a trace; flame trace.sqlite does the same"),
        ("flame view", "list the traces here, and those shown before"),
        ("flame view 'run/rank*.json.zst'", "several files, each as a rank"),
        ("zcat trace.json.gz | flame view -", "what comes by standard input"),
        ("flame view https://host/trace.json.gz", "a trace that is elsewhere"),
        ("flame view trace.sqlite --levels nvtx,kernel --print", "as text"),
    ),
    "attach": (
        ("flame attach", "list what runs, and choose"),
        ("flame attach 4711", "watch the process with this number"),
        ("flame attach --list --json", "what can be attached to, for scripts"),
    ),
    "export": (
        ("flame export trace.sqlite -f speedscope", "write trace.speedscope.json"),
        ("flame export trace.sqlite -f folded -o - | flamegraph.pl > a.svg", "draw it"),
    ),
    "report": (
        ("flame report trace.sqlite", "where the time went, and what to do first"),
        ("flame report trace.sqlite --section findings --json", "one section, for scripts"),
        ("flame report trace.sqlite --fail-on 'idle > 30%'", "exit with 5 where that holds"),
    ),
    "diff": (
        ("flame diff before.sqlite after.sqlite", "two runs, in the app"),
        ("flame diff before.sqlite after.sqlite --md", "the same for a pull request"),
        (
            "flame diff a.sqlite b.sqlite --fail-on 'step.p50 > +5%'",
            "exit with 5 if slower",
        ),
    ),
    "ranks": (
        ("flame ranks 'run/*.json.gz' -o run.flamesum", "sum up the ranks of a run"),
        ("flame ranks run.flamesum", "compare these ranks"),
    ),
    "top": (
        ("flame top trace.sqlite", "the frames that weigh most by themselves"),
        ("flame top trace.sqlite --level kernel --by p99 -n 50", "kernels, the slowest first"),
    ),
    "info": (
        ("flame info trace.sqlite", "what the trace has and lacks"),
        ("flame info trace.sqlite --json", "the same for scripts"),
    ),
    "cache": (
        ("flame cache", "what is kept, and how much that is"),
        ("flame cache clear", "remove it"),
    ),
    "mcp": (("flame mcp run/", "let an assistant ask about the traces in a folder"),),
    "doctor": (("flame doctor", "what works here, and how to fix what does not"),),
    "completion": (("flame completion bash", "the script for bash; below is where it goes"),),
}
"""By command: a command line, and what it does."""


def examples_of(command: str) -> str:
    """Return the examples of a command as text."""
    lines = (f"  {line}\n      {about}\n" for line, about in EXAMPLES[command])
    return "examples:\n" + "".join(lines)
