"""Run ``flame ranks``: sum up the traces of many ranks in one file, and compare the ranks."""

from __future__ import annotations

import argparse
import os
import re
from contextlib import contextmanager
from typing import TYPE_CHECKING

from flame.cli.outputs import refuse_terminal
from flame.console.terminal import say
from flame.core.errors import CancelledError, InputError, UsageError
from flame.core.starting import prepare_process
from flame.core.units import format_counted
from flame.options.config import allows_cache

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flame.core.rank_summary.summary import RankSummary
    from flame.core.ranks.inputs import RankInputs
    from flame.core.ranks.job import Engine
    from flame.core.ranks.summarise import RankOptions
    from flame.engines.output import SummaryOutput

INCOMPLETE = 7
"""The exit code of a summary that is written and lacks ranks."""

_EPILOG = """\
flame ranks run.flamesum late.sqlite -o run.flamesum    add a rank
flame ranks … -o run.flamesum --dask tcp://head:8786    on a Dask cluster
srun flame ranks --here --share %q{SLURM_PROCID}/%q{SLURM_NTASKS} 'runs/*.sqlite' \\
                        -o part.%q{SLURM_PROCID}.flamesum      each task its share, merged later
"""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    text = "a trace of a rank, a folder of dumps, a pattern in quotes, or a summary (.flamesum). "
    text += "%%q{NAME} stands for a variable of the environment, here and in -o"
    parser.add_argument("paths", metavar="PATH", nargs="+", help=text)
    _add_output(parser.add_argument_group("output"))
    _add_meaning(parser.add_argument_group("what ranks and iterations are"))
    _add_engine(parser.add_argument_group("how files are read"))
    parser.epilog = _EPILOG
    parser.set_defaults(run=run)


def _add_output(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    text = "write the summary of all into this file, which may be one of PATH"
    add("-o", "--output", metavar="FILE", help=text)
    add("--force", action="store_true", help="let -o replace a file")
    text = "write nothing and exit with 3, not 7, where a rank cannot be read"
    add("--strict", action="store_true", help=text)
    add("--json", action="store_true", help="print JSON, for scripts")


def _add_engine(group: argparse._ArgumentGroup) -> None:
    add, where = group.add_argument, group.add_mutually_exclusive_group()
    text = "read on a Dask cluster: the address of its scheduler, the file it has written, local "
    text += "(on this machine) or slurm (as ~/.config/dask/jobqueue.yaml says)"
    where.add_argument("--dask", metavar="WHERE", help=text)
    text = "read one file after another, as a task of srun or mpirun does with its own"
    where.add_argument("--here", action="store_true", help=text)
    text = "how many files to read at a time (default: a processor each, as far as memory allows); "
    text += "with --dask local or slurm how many workers to start"
    add("--workers", metavar="N", type=int, help=text)
    text = "of the files only each N-th from the I-th (from 0) on"
    add("--share", metavar="I/N", help=text)


def _add_meaning(group: argparse._ArgumentGroup) -> None:
    add = group.add_argument
    text = "the mesh of ranks, whose groups communicate, where traces do not record these: "
    text += "pp=4,dp=2,tp=8 (ranks count up along the last first)"
    add("--groups", metavar="A=N,…", help=text)
    text = (
        "ranges whose name matches are the iterations, as for flame report (default: steps of the "
    )
    text += "profiler, else ranges that repeat, such as step 7)"
    add("--iteration", metavar="RE", default="", help=text)


def run(args: argparse.Namespace) -> int:
    """Sum up the ranks that ``args`` name, or compare those of a summary."""
    prepare_process()
    if args.workers is not None and args.workers < 1:
        raise UsageError(f"--workers {args.workers}: is no number of files")
    from flame.core.ranks.inputs import fill_in, list_paths, read_inputs

    options = _options(args)
    paths = _share(list_paths(map(fill_in, args.paths)), args.share)
    inputs = read_inputs(paths, options.iteration)
    if args.output is None:
        from flame.cli.report.ranks import print_summary

        if options.iteration and not inputs.files:
            raise UsageError("--iteration: a summary keeps the iterations that it has: name traces")
        print_summary(_only_summary(inputs), args.paths, as_json=args.json)
        return 0
    from flame.engines.output import SummaryOutput

    refuse_terminal(args.output, "a summary")
    output = SummaryOutput(fill_in(args.output), inputs, force=args.force)
    for note in inputs.notes:
        say(note)
    return _write(_sum_up(inputs, output, args, options), output, args)


def _options(args: argparse.Namespace) -> RankOptions:
    """Return how ranks are to be read; UsageError for what cannot be understood."""
    from flame.core.ranks.communication.rank_groups import RankGroups
    from flame.core.ranks.summarise import RankOptions

    if args.iteration:
        from flame.core.regex import compile_expression

        try:
            compile_expression(args.iteration)
        except UsageError as error:
            raise UsageError(f"--iteration {args.iteration!r}: {error}") from None
    mesh = args.groups and RankGroups.parse(args.groups)
    return RankOptions(mesh, args.iteration, allows_cache(args))


def _share(paths: list[str], share: str | None) -> list[str]:
    """Return the files that fall to a task."""
    if share is None:
        return paths
    from flame.core.ranks.inputs import fill_in

    match = re.fullmatch(r"(\d{1,7})/(\d{1,7})", fill_in(share))
    if not match or int(match[1]) >= int(match[2]):
        raise UsageError(f"--share {share}: is no I/N with I from 0 to N - 1: 3/64")
    return paths[int(match[1]) :: int(match[2])]


def _only_summary(inputs: RankInputs) -> RankSummary:
    """Return the summary to report on, where there is nothing to be read and nothing to merge."""
    for file in inputs.files[:1]:
        _check_readable(file.path)
    if inputs.files or len(inputs.summaries) != 1:
        number = format_counted(len(inputs.files), "file", "files")
        what = f"{number} to read" if inputs.files else "several summaries to merge"
        raise UsageError(f"{what}: name the file to write, too: -o run.flamesum")
    summary = inputs.summaries[0]
    if not inputs.merged:
        raise InputError(f"{summary.lost[0].path}: {summary.lost[0].reason}")
    return summary


def _check_readable(path: str) -> None:
    from flame.core.mapped_files import open_regular

    try:
        os.close(open_regular(path))
    except OSError as error:
        raise InputError(f"{path}: {(error.strerror or str(error)).lower()}") from None


# Summing up


def _sum_up(
    inputs: RankInputs, output: SummaryOutput, args: argparse.Namespace, options: RankOptions
) -> RankSummary:
    """Read the files; where ctrl+c ends that, say where what has been read is."""
    from flame.console.interrupting import ended_by_interrupt
    from flame.console.progress import progress_on_stderr
    from flame.core.ranks.job import RankJob
    from flame.engines.progress import RankMeter

    with _engine(args) as engine:
        job = RankJob(engine, inputs.summaries, output.keep)
        try:
            with progress_on_stderr() as shown, ended_by_interrupt(shown) as progress:
                meter = RankMeter(inputs.files, progress)
                return job.run(inputs.files, meter, options)
        except CancelledError:
            if kept := output.kept:
                say(f"stopped: what has been read is in {kept}; name it, too, to go on from there")
            raise


@contextmanager
def _engine(args: argparse.Namespace) -> Iterator[Engine]:
    """Open what reads the files."""
    from flame.core.loading.processes import available_cores

    workers = args.workers or (1 if args.here else available_cores())
    if args.dask is None:
        from contextlib import closing

        from flame.core.memory import bytes_to_use
        from flame.engines.local import LocalEngine

        with closing(LocalEngine(workers, bytes_to_use())) as engine:
            yield engine
        return
    try:
        from flame.engines.dask_cluster import dask_engine
    except ModuleNotFoundError as error:
        need = f"--dask needs {error.name}, which is not installed"
        raise UsageError(f"{need}: pip install dask distributed") from None
    with dask_engine(args.dask, workers) as (engine, warning):
        if warning:
            say(warning)
        yield engine


def _write(summary: RankSummary, output: SummaryOutput, args: argparse.Namespace) -> int:
    """Write the summary, and name what it lacks; InputError where that is not to be written."""
    from flame.core.ranks.consistency import inconsistencies

    for one in summary.lost:
        say(f"{one.path}: {one.reason}")
    lost = format_counted(len(summary.lost), "file", "files")
    if not len(summary):
        raise InputError(f"no rank can be read: {output.path} is not written")
    if summary.lost and args.strict:
        raise InputError(f"{lost} cannot be read: {output.path} is not written (--strict)")
    output.write(summary)
    for note in inconsistencies(summary, args.iteration):
        say(note)
    ranks = format_counted(len(summary), "rank", "ranks")
    say(f"wrote {output.path}: {ranks}" + (f", without {lost}" if summary.lost else ""))
    return INCOMPLETE if summary.lost else 0
