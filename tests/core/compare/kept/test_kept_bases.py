"""A kept base is compared as its trace is; what is damaged is refused in a line."""

from __future__ import annotations

import gzip
import json
import random
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given

from flame.cli.main import main
from flame.core.compare.comparison import compare
from flame.core.compare.evidence import EvidenceLevel, find_evidence
from flame.core.compare.gate.decide import decide
from flame.core.compare.gate.terms import read_condition
from flame.core.compare.keep import keep_run
from flame.core.compare.kept.base_file import SCHEMA, KeptBase, encode_base, is_kept_base
from flame.core.compare.sections.diff_report import SECTIONS, diff_sections
from flame.core.compare.sides import KeptRun, Run, Sides, open_runs
from flame.core.errors import InputError, NoMatchError, UsageError
from flame.core.loading.many import load
from flame.core.memory import MemoryShortError
from flame.core.options import LoadOptions
from flame.core.projection.filters import Devices, Kernel, Steps, Time
from flame.core.projection.selection import Selection, select
from flame.reporting.report_json import as_json
from tests.conftest import TRACES, needs_traces
from tests.support.generated.strategies import Script, scripts
from tests.support.paths import SAMPLES
from tests.support.tiers import examples
from tests.support.writers.nsysfile import NsysFile

SAMPLE = SAMPLES / "decode_small.sqlite"
REAL_TRACES = sorted(
    f"{path.parent.name}/{path.name}"
    for pattern in ("nsys/*.sqlite", "kineto/*.json.gz")
    for path in TRACES.glob(pattern)
)


def kept(run: Run, selection: Selection | None = None) -> KeptRun:
    """What is opened of a run that was kept."""
    data = msgspec.json.decode(gzip.decompress(encode_base([keep_run(run, selection or select())])))
    read = msgspec.convert(data, KeptBase)
    return KeptRun.of(read.runs[0], run.label)


def told(base: Run, new: Run, selection: Selection, per: str = "") -> dict[str, object]:
    """All that a comparison says, but for what only activities tell."""
    comparison = compare(Sides((base,), (new,)), selection, per)
    found: dict[str, object] = json.loads(
        as_json(diff_sections(comparison), 10_000, lambda place: None, {})
    )
    return found


def without_evidence(told: object) -> object:
    """The same without what tests of activities found."""
    if isinstance(told, dict):
        hidden = {"evidence", "interval_percent", "n", "verdict", "low_percent", "high_percent"}
        hidden |= {"chance", "pairs"}
        return {key: without_evidence(one) for key, one in told.items() if key not in hidden}
    return [without_evidence(one) for one in told] if isinstance(told, list) else told


@examples(0.7, [HealthCheck.too_slow])
@given(scripts(), scripts())
def test_a_kept_base_is_compared_as_its_trace(trace_file: Path, base: Script, new: Script) -> None:
    runs = [
        Run(load(script.write(trace_file.with_name(name)), LoadOptions("raw")), name)
        for script, name in ((base, "BASE"), (new, "NEW"))
    ]
    try:
        again = kept(runs[0])
    except (UsageError, NoMatchError):
        return
    selection = select("launch,nvtx,kernel")
    sections = [told(one, runs[1], selection, "total") for one in (runs[0], again)]
    for name in ("summary", "budget", "kernels", "finding_changes"):
        assert without_evidence(sections[0][name]) == without_evidence(sections[1][name]), name


@needs_traces
@pytest.mark.deep
@pytest.mark.parametrize("name", REAL_TRACES)
def test_real_traces_are_compared_as_they_were(name: str) -> None:
    trace, other = load(TRACES / name), load(SAMPLE)
    if not len(trace.activities):
        pytest.skip("nothing ran on a GPU")
    base, new = Run(trace, "BASE"), Run(other, "NEW")
    again = kept(base, select(fold=True, fold_numbers=True))
    for selection in (select(fold=True, fold_numbers=True), select("category,kernel")):
        for one in (base, new):
            pair = [told(side, one, selection) for side in (base, again)]
            for section in ("summary", "budget", "kernels", "finding_changes"):
                assert without_evidence(pair[0][section]) == without_evidence(pair[1][section])


def test_steps_of_a_kept_base_are_evidence(tmp_path: Path) -> None:
    def run(name: str, length: int) -> Run:
        with NsysFile(tmp_path / name) as file:
            for step in range(12):
                at = step * 10_000
                file.nvtx(f"step {step}", at, at + 9_000)
                file.api("cudaLaunchKernel_v7000", at + 10, at + 20, step + 1)
                file.kernel("gemm", at + 100, at + 100 + length + step, step + 1)
        return Run(load(tmp_path / name), name)

    base, new = run("base", 1000), run("new", 1300)
    pair = [compare(Sides((one,), (new,))) for one in (base, kept(base))]
    found = [find_evidence(one) for one in pair]
    for name in ("level", "verdict", "p", "low", "high"):
        first, again = (getattr(one, name).tolist() for one in found)
        assert first == pytest.approx(again, nan_ok=True)
    assert found[1].level[0] == EvidenceLevel.STEPS
    condition = 'step.p50 > -50% and gpu_time > +20% and frame("gemm").mean > +20%'
    conditions = ["--fail-on", condition, "--section", "summary"]
    path = tmp_path / "base.flame-base.json.gz"
    assert main(["diff", str(tmp_path / "base"), "--keep-base", str(path)]) == 0
    assert main(["diff", str(path), str(tmp_path / "new"), *conditions]) == 5


def test_files_of_a_base_are_known_by_their_content(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "anything"
    assert main(["diff", str(SAMPLE), "--keep-base", str(path)]) == 0
    assert is_kept_base(path) and not is_kept_base(SAMPLE) and not is_kept_base(tmp_path)
    assert main(["diff", str(path), str(SAMPLE), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"]["verdict"] == "identical"
    assert main(["diff", str(SAMPLE), "--keep-base", str(path)]) == 2
    assert "--force replaces it" in capsys.readouterr().err


def test_nothing_of_the_machine_is_kept() -> None:
    text = json.dumps(msgspec.to_builtins(keep_run(Run(load(SAMPLE), "BASE"), select())))
    for word in ("/proc", "environ", "LD_PRELOAD", str(SAMPLE.parent)):
        assert word not in text


@pytest.mark.parametrize("one", [Time(0, 5), Steps(((1, 2),)), Devices((0,))])
def test_filters_on_what_is_not_kept_are_refused(one: Time | Steps | Devices) -> None:
    run = Run(load(SAMPLE), "BASE")
    with pytest.raises(UsageError, match="BASE is a kept base: filters by time"):
        compare(Sides((kept(run),), (run,)), select(where=(one,)))
    found = compare(Sides((kept(run),), (run,)), select(where=(Kernel("gemm"),)))
    assert not found.changes.delta.any()


def test_what_was_kept_of_all_names_is_not_told_of_some() -> None:
    run = Run(load(SAMPLE), "BASE")
    found = compare(Sides((kept(run),), (run,)), select(where=(Kernel("gemm"),)))
    sections = {one.name: one for one in diff_sections(found)}
    assert (
        sections["finding_changes"].why
        == "findings were kept of all names: compare without filters"
    )
    for text in ("gpu_time > +0%", "kernels > +0", "launches > +0", "findings.high > +0"):
        [one] = decide(found, read_condition(text)).undecided
        assert one.why == "BASE: a kept base has it of all names alone: compare without filters"
    for text in ("busy > +9%", "idle_percent > +9", 'frame("Kernel2").count > +0'):
        assert decide(found, read_condition(text)).holds is False, text


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ([str(SAMPLE), str(SAMPLE), "--keep-base", "x"], "takes one side"),
        (["--keep-base", "x"], "takes one side"),
        (["a.folded", "--keep-base", "x"], "has no GPU activities"),
        (["base", str(SAMPLE), "--base-select", "--kernel x"], "filter when keeping it"),
        (["base", "base", "--keep-base", "x"], "takes one side"),
    ],
)
def test_mistakes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    why: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.folded").write_text("main 3\n")
    Path("base").write_bytes(encode_base([keep_run(Run(load(SAMPLE), "BASE"), select())]))
    assert main(["diff", *words]) == 2
    error = capsys.readouterr().err
    assert why in error and error.count("\n") == 1


def damaged(document: dict[str, Any], chance: random.Random) -> str:
    """The JSON with a number, a name or a bracket changed."""
    node: Any = document
    key: Any = "runs"
    while isinstance(node[key], dict | list) and node[key] and chance.random() < 0.95:
        node = node[key]
        key = chance.choice(list(node) if isinstance(node, dict) else range(len(node)))
    before = node[key]
    node[key] = chance.choice([-1, 0, 1 << 40, 1 << 70, "x", None, [], {}, 1.5, [-1], True])
    text = json.dumps(document, separators=(",", ":"))
    node[key] = before
    return text


@pytest.mark.deep
def test_damaged_bases_are_refused_in_a_line_or_compared(tmp_path: Path) -> None:
    base = encode_base([keep_run(Run(load(SAMPLE), "BASE"), select())])
    document = json.loads(gzip.decompress(base))
    path, chance, new = tmp_path / "base", random.Random(20), Run(load(SAMPLE), "NEW")
    for _ in range(200):
        path.write_bytes(gzip.compress(damaged(document, chance).encode(), 1))
        try:
            diff_sections(compare(Sides(open_runs(path, "BASE"), (new,))))
        except (InputError, UsageError, NoMatchError) as error:
            assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b'{"flame_base":1}', "is no kept base that can be read"),
        (b'{"flame_base":99,"version":"9","runs":[]}', "by a newer flame"),
        (b'{"flame_base":1,"version":"1","runs":[]}', "holds no run"),
        (b'{"flame_base":', "is no kept base that can be read"),
        (b'{"flame_base":"\xff"}', "is no kept base that can be read"),
    ],
)
def test_what_is_no_base_is_refused(tmp_path: Path, data: bytes, why: str) -> None:
    path = tmp_path / "base"
    path.write_bytes(gzip.compress(data))
    assert is_kept_base(path)
    with pytest.raises(InputError, match=why):
        open_runs(path, "BASE")


def test_a_base_whose_steady_part_is_damaged_is_refused_when_it_is_opened(tmp_path: Path) -> None:
    frozen = Path(__file__).parent / "frozen.flame-base.json.gz"
    document = json.loads(gzip.decompress(frozen.read_bytes()))
    document["runs"][0]["steady"]["total"] = []
    path = tmp_path / "base"
    path.write_bytes(gzip.compress(json.dumps(document, separators=(",", ":")).encode()))
    with pytest.raises(InputError, match=f"^{path}: the kept base does not hold together"):
        open_runs(path, "BASE")


def base_of_empty_frames(path: Path, number: int) -> int:
    """Write a base of nothing but equal frames; the bytes of its JSON."""
    frames = b",".join([b'[0,""]'] * number)
    text = b'{"flame_base":1,"version":"1","runs":[{"frames":[' + frames + b"]}]}"
    path.write_bytes(gzip.compress(text))
    return len(text)


def test_a_base_that_unpacks_to_more_than_bases_do_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "base"
    size = base_of_empty_frames(path, 2_000_000)
    assert is_kept_base(path) and size > 500 * path.stat().st_size
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match="unpacks to more than any kept base"):
            open_runs(path, "BASE")
        assert tracemalloc.get_traced_memory()[1] < size
    finally:
        tracemalloc.stop()


def test_a_small_base_takes_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "base"
    base_of_empty_frames(path, 100)
    tracemalloc.start()
    try:
        with pytest.raises(InputError, match=r"lacks|missing"):
            open_runs(path, "BASE")
        assert tracemalloc.get_traced_memory()[1] < 8 << 20  # modules that it imports included
    finally:
        tracemalloc.stop()


def test_a_base_that_needs_more_memory_than_there_is_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "base"
    base_of_empty_frames(path, 100_000)
    monkeypatch.setenv("FLAME_MEMORY", "10MB")
    with pytest.raises(MemoryShortError, match=r"needs about 21\.0 MB of memory"):
        open_runs(path, "BASE")


def test_a_base_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "base"
    path.write_bytes(encode_base([keep_run(Run(load(SAMPLE), "BASE"), select())])[:-30])
    with pytest.raises(InputError, match="cannot be read"):
        open_runs(path, "BASE")


def test_a_later_flame_reads_the_bases_of_this_one() -> None:
    [run] = open_runs(Path(__file__).parent / "frozen.flame-base.json.gz", "BASE")
    found = compare(Sides((run,), (Run(load(SAMPLE), "NEW"),)), select(fold=True))
    assert SCHEMA >= 1 and not found.changes.delta.any()
    told = {section.name for section in diff_sections(found)}
    assert told == {*SECTIONS} - {"ranks"}
    [undecided] = decide(found, read_condition('frame("Kernel2").p99 > +5%')).undecided
    assert undecided.why == (
        "BASE: an older flame kept the base, without how long activities took: keep it again"
    )
    for text in ("peak_memory > +5%", 'phase("prefill").total > +5%'):
        assert decide(found, read_condition(text)).holds is None
    assert decide(found, read_condition('phase("*").total > +5%')).holds is False
