"""What CUPTI does, without flame: the probe alone asks it."""

from __future__ import annotations

import json
from contextlib import suppress
from functools import partial
from typing import Any

from benchmarks.gpu.bench import FLAME, TRANSFORMER, Bench, Env, skip_unless_permitted
from benchmarks.gpu.check import Check, CheckSkippedError, Finding
from benchmarks.gpu.criteria import AFTER_LAUNCH

NULL_BUFFERS = 27
"""The first version of CUPTI that takes none for an answer when it asks for a buffer (12.9)."""
NO_PERMISSION = "cuptiPCSamplingEnable 35"
EARLY_NS = 2000
MODES, KINDS, SCRATCH = ("continuous", "serialized"), ("concurrent", "kernel"), (0, 16)
FURTHER = {
    "hw-128": {"PROBE_HW_MB": "128"},
    "period-12": {"PROBE_PERIOD": "12"},
    "period-20": {"PROBE_PERIOD": "20"},
}


def steps(bench: Bench) -> list[str]:
    """The workload of a probe: PyTorch's where it is there, else the driver's own."""
    return [*TRANSFORMER, str(bench.size(10, 100))]


def machine(bench: Bench) -> Finding:
    """What `flame doctor` says of this machine."""
    found = Finding()
    done = bench.run([*FLAME, "doctor", "--json"], code=None)
    with suppress(ValueError):
        found.tell(doctor=json.loads(done.out))
    found.hold("flame doctor", done.code == 0, f"exit code {done.code}")
    return found


def plain(bench: Bench) -> Finding:
    """The workload alone, which the times of others are held against."""
    found = Finding()
    times = [bench.run(steps(bench)).seconds for _ in range(bench.size(1, 3))]
    found.tell(seconds=[round(one, 3) for one in times])
    found.hold("runs", True, f"{min(times):.2f} s")
    return found


def builds(bench: Bench) -> Finding:
    """The probe is built, and CUPTI is found."""
    found = Finding()
    seen = bench.probed(steps(bench))
    found.tell(cupti=seen["cupti"], version=seen["version"], set_up_ms=seen["set_up_ms"])
    found.hold("CUPTI", bool(seen["cupti"]), seen["cupti"])
    found.hold("subscribed", seen["results"].get("cuptiSubscribe 0") == 1, wrong(seen))
    refuses = "fewer buffers" if seen["version"] >= NULL_BUFFERS else "always a buffer"
    found.tell(null_buffers=refuses)
    return found


def calls(bench: Bench) -> Finding:
    """Callbacks of the driver alone see the call of every kernel, also the runtime's."""
    return all_domains(bench, steps(bench))


def mixed_calls(bench: Bench) -> Finding:
    """Calls, records and graphs of all that PyTorch and Triton do, on threads and backward too."""
    command = bench.workload("torch_mix.py", bench.size(5, 30), "all")
    found = all_domains(bench, command)
    seen = bench.probed(command)
    hold_records(found, seen)
    hold_nodes(found, seen)
    return found


def all_domains(bench: Bench, command: list[str]) -> Finding:
    """Run it with callbacks of the driver, of both, of the runtime alone."""
    found = Finding()
    domains = ("driver", "both", "runtime")
    of = {name: bench.probed(command, {"PROBE_DOMAINS": name}) for name in domains}
    for name, seen in of.items():
        found.tell(**{name: {key: seen[key] for key in seen if key.startswith("kernels")}})
    counts = {name: seen["kernels"] for name, seen in of.items()}
    found.hold("equal counts", len(set(counts.values())) == 1 and counts["driver"] > 0, counts)
    without = of["driver"]["kernels_of_none"]
    found.hold("kernels without a call", without == 0, without)
    apart = of["both"]["nested_apart"]
    found.hold("ids of nested calls", apart == 0, apart)
    found.tell(calls=of["both"]["calls"])
    return found


def records(bench: Bench) -> Finding:
    """No record is without a call or times; none begins much before its call."""
    found = Finding()
    hold_records(found, bench.probed(steps(bench)))
    return found


def hold_records(found: Finding, seen: dict[str, Any]) -> None:
    """Hold what must be so of the records that the probe has seen."""
    total = seen["kernels"] + seen["others"]
    found.hold("copies without a call", seen["others_of_none"] == 0, seen["without_call"])
    found.hold("without times", seen["untimed"] == 0, seen["untimed"])
    found.hold("ends before it starts", seen["backwards"] == 0, seen["backwards"])
    share = 1 - seen["early"] / max(total, 1)
    ok = share >= AFTER_LAUNCH and seen["earliest_ns"] <= EARLY_NS
    found.hold("after the call", ok, f"{share:.3%} of {total}, {seen['earliest_ns']} ns at most")
    found.tell(buffers_at_most=seen["buffers_at_most"], flush_ms=seen["flush_ms"])


def graphs(bench: Bench) -> Finding:
    """Every record of a graph leads to a node that was captured."""
    found = Finding()
    hold_nodes(found, bench.probed(steps(bench)))
    return found


def hold_nodes(found: Finding, seen: dict[str, Any]) -> None:
    """Hold what must be so of the nodes of graphs that the probe has seen."""
    known = f"{seen['of_known_nodes']} of {seen['of_graphs']}"
    found.hold("captures", seen["of_known_nodes"] == seen["of_graphs"] > 0, known)
    blind = seen["created_in"].get("(no call)", 0)
    found.hold("nodes made in a call that is seen", blind == 0, blind)
    found.tell(created_in=seen["created_in"], twice=seen["nodes_told_twice"])
    found.tell(created=seen["nodes_created"], cloned=seen["nodes_cloned"])


def modules(bench: Bench) -> Finding:
    """How many cubins CUPTI's checksum does not tell apart; any number is right."""
    found = Finding()
    seen = bench.probed(bench.workload("torch_mix.py", 5, "triton,copy"))
    found.hold("modules", seen["modules"] > 0, seen["modules"])
    found.tell(checksums=seen["checksums"], of_several=seen["checksums_of_several"])
    found.tell(megabytes=seen["module_bytes"] / 1e6, checksum_ms=seen["checksum_ns"] / 1e6)
    return found


def sampling(bench: Bench, env: Env) -> Finding:
    """PC samples come beside records, and no call fails."""
    found = Finding()
    seen = bench.probed(steps(bench), env)
    if NO_PERMISSION in seen["results"]:
        skip_unless_permitted("INSUFFICIENT_PRIVILEGES")
    if not seen["sampled_contexts"]:
        raise CheckSkippedError(f"PC sampling ({wrong(seen)})")
    exact = env["PROBE_PC"] == "serialized"
    related = seen["samples_with_correlation"]
    found.hold("kernels", seen["kernels"] > 0, seen["kernels"])
    found.hold("samples", seen["samples"] > 0, seen["samples"])
    found.hold("launch of samples", (related > 0) == exact, f"{related} of {seen['samples']}")
    found.hold("no call fails", not wrong(seen), wrong(seen))
    names = ("hardware_full", "dropped_samples", "looks", "sampling_set_up_ms", "sampling_end_ms")
    found.tell(**{name: seen[name] for name in names})
    return found


def wrong(seen: dict[str, Any]) -> str:
    """The calls that did not return 0, with what they returned, and how often."""
    results = seen["results"].items()
    return ", ".join(f"{key}: {count}" for key, count in results if not key.endswith(" 0"))


def matrix() -> tuple[Check, ...]:
    """Every mode with every kind of kernel records, with CUPTI's scratch buffer and more."""
    needs = ("gpu", "nvtx", "compiler")
    found = []
    for mode in MODES:
        for kind in KINDS:
            for scratch in SCRATCH:
                env = {"PROBE_PC": mode, "PROBE_KIND": kind, "PROBE_SCRATCH_MB": str(scratch)}
                name = f"probe-{mode}-{kind}-{scratch}"
                quick = kind == "concurrent" and scratch == SCRATCH[-1]
                look = partial(sampling, env=env)
                found.append(Check(name, "PC sampling", 1, look, needs, 30, quick))
    for name, more in FURTHER.items():
        look = partial(sampling, env={"PROBE_PC": "continuous", "PROBE_SCRATCH_MB": "16", **more})
        found.append(Check(f"probe-continuous-{name}", "PC sampling", 1, look, needs, 30))
    return tuple(found)


NEEDS = ("gpu", "nvtx", "compiler")
CHECKS = (
    Check("probe-builds", "machine", 1, builds, NEEDS, 90, quick=True),
    Check("machine", "machine", 1, machine, ("gpu", "library"), 60, quick=True),
    Check("plain", "machine", 1, plain, ("gpu", "nvtx"), 60),
    Check("probe-calls", "calls", 1, calls, NEEDS, 60, quick=True),
    Check("probe-records", "records", 1, records, NEEDS, 30, quick=True),
    Check("probe-graphs", "graphs", 1, graphs, NEEDS, 30, quick=True),
    Check("probe-torch", "calls", 1, mixed_calls, ("gpu", "compiler", "torch"), 90, quick=True),
    Check("probe-modules", "cubins", 1, modules, ("gpu", "compiler", "torch", "triton"), 60),
    *matrix(),
    Check(
        "probe-late",
        "PC sampling",
        1,
        partial(sampling, env={"PROBE_PC": "continuous", "PROBE_LATE": "1"}),
        NEEDS,
        30,
        quick=True,
    ),
)
