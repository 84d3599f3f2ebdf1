"""What a load may take of memory: told by the system, by control groups, or by the user."""

from __future__ import annotations

from pathlib import Path

import pytest

from flame.core.errors import InputError, UsageError
from flame.core.loading.many import load
from flame.core.memory import VARIABLE, FreeMemory, free_memory, within_memory
from flame.core.options import silent
from tests.support.paths import SAMPLES

GB = 1_000_000_000
TRACE = Path("trace.sqlite")


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A machine with 8,000 KiB of memory that is free, 1,000 KiB of swap, no control groups."""
    lines = ("MemTotal: 16000 kB", "MemAvailable:    8000 kB", "SwapFree: 1000 kB", "HugePages: 0")
    write(tmp_path / "proc/meminfo", "\n".join(lines))
    return tmp_path


def limit(folder: Path, most: object, used: int, files: int = 0) -> None:
    """A control group of the second version."""
    write(folder / "memory.max", f"{most}\n")
    write(folder / "memory.current", f"{used}\n")
    write(folder / "memory.stat", f"anon 7\ninactive_file {files}\nactive_file 0\n")


def test_it_is_what_the_machine_has(machine: Path) -> None:
    assert free_memory(machine) == FreeMemory(8000 * 1024, 1000 * 1024)


def test_a_control_group_or_one_around_it_leaves_less(machine: Path) -> None:
    write(machine / "proc/self/cgroup", "0::/outer/own\n")
    groups = machine / "sys/fs/cgroup"
    limit(groups / "outer/own", "max", 5000)
    limit(groups / "outer", 1_000_000, 400_000, files=100_000)
    assert free_memory(machine) == FreeMemory(700_000, 1000 * 1024)
    limit(groups / "outer/own", 600_000, 500_000)
    assert free_memory(machine) == FreeMemory(100_000, 1000 * 1024)


def test_within_a_container_only_the_topmost_group_is_there(machine: Path) -> None:
    write(machine / "proc/self/cgroup", "0::/docker/0123\n")
    limit(machine / "sys/fs/cgroup", 1_000_000, 400_000)
    assert free_memory(machine) == FreeMemory(600_000, 1000 * 1024)


def test_groups_of_the_first_version_say_it_in_other_files(machine: Path) -> None:
    write(machine / "proc/self/cgroup", "5:devices:/own\n4:memory:/own\n0::/\n")
    own = machine / "sys/fs/cgroup/memory/own"
    write(own / "memory.limit_in_bytes", "1000000")
    write(own / "memory.usage_in_bytes", "700000")
    write(own / "memory.stat", "total_inactive_file 50000\ntotal_active_file 50000\n")
    assert free_memory(machine) == FreeMemory(400_000, 1000 * 1024)


def test_a_group_that_takes_more_than_it_may_leaves_nothing(machine: Path) -> None:
    write(machine / "proc/self/cgroup", "0::/own\n")
    limit(machine / "sys/fs/cgroup/own", 1000, 2000)
    assert free_memory(machine) == FreeMemory(0, 1000 * 1024)


@pytest.mark.parametrize("text", [None, "", "MemAvailable: many kB", "SwapFree: 1 kB"])
def test_it_is_unknown_where_the_system_does_not_say(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        write(tmp_path / "proc/meminfo", text)
    assert free_memory(tmp_path) is None


@pytest.mark.parametrize("need", [0, 5 * GB, 9 * GB])
def test_what_fits_is_loaded_without_a_word(need: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "10GB")
    assert within_memory(TRACE, need, silent) is silent


@pytest.mark.parametrize("need", [9 * GB + 1, 11 * GB, 12_500_000_000])
def test_where_it_is_close_the_load_says_so_and_goes_on(
    need: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(VARIABLE, "10GB")
    told: list[tuple[str, int, int]] = []
    within_memory(TRACE, need, lambda *report: told.append(report))("reading", 3, 4)
    ((stage, *rest),) = told
    assert stage.startswith("reading (needs about ") and "10.0 GB are free" in stage
    assert rest == [3, 4]


def test_what_cannot_fit_is_refused_and_can_be_tried_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(VARIABLE, "10GB")
    with pytest.raises(InputError) as refused:
        within_memory(TRACE, 12_500_000_001, silent)
    assert str(refused.value) == (
        "trace.sqlite: needs about 12.5 GB of memory, and 10.0 GB are free: end other programs or "
        "take a larger machine; FLAME_MEMORY=13GB tries all the same"
    )
    monkeypatch.setenv(VARIABLE, "13GB")
    within_memory(TRACE, 12_500_000_001, silent)


def test_swap_is_no_reason_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("flame.core.memory.free_memory", lambda: FreeMemory(GB, GB))
    within_memory(TRACE, 2 * GB, silent)
    with pytest.raises(InputError):
        within_memory(TRACE, 3 * GB, silent)


def test_what_is_no_amount_of_data_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "much")
    with pytest.raises(UsageError, match="FLAME_MEMORY: 'much' is not an amount of data"):
        within_memory(TRACE, 1, silent)


def test_an_export_is_refused_before_it_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "1kB")
    told: list[str] = []
    with pytest.raises(InputError, match="needs about"):
        load(SAMPLES / "decode_small.sqlite", progress=lambda stage, *_: told.append(stage))
    assert told == []
    monkeypatch.setenv(VARIABLE, "1GB")
    assert load(SAMPLES / "decode_small.sqlite").size
