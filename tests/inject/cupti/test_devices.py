"""GPUs of several processes, each of which numbers those that it sees from 0 on."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from flame.console.info import as_json, as_text
from flame.core.loading.inputs import Inputs
from flame.core.loading.many import load
from flame.core.model.profile import Profile
from tests.inject.cupti.cupti_recorded import PRELUDE
from tests.support.waiting import PATIENCE

PROGRAM = (
    PRELUDE
    + """
context()
check(launch(kernel("one")))
synchronize()
"""
)
FIRST, THIRD = (f"00000000-0000-0000-0000-{number:012x}" for number in (1, 3))


def workers(
    injected_env: Callable[..., dict[str, str]], folder: Path, visible: list[str]
) -> Profile:
    """The recording of a process for each value of CUDA_VISIBLE_DEVICES."""
    for devices in visible:
        env = injected_env(folder, CUDA_VISIBLE_DEVICES=devices, FLAME_CLOCK="1700000000000000000")
        subprocess.run([sys.executable, "-c", PROGRAM], env=env, timeout=PATIENCE, check=True)
    return load(folder)


def test_gpus_of_one_number_are_told_apart(
    injected_env: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    profile = workers(injected_env, tmp_path / "ray.flame", ["0", "2,3"])
    assert [gpu.id for gpu in profile.devices] == [0, 0]
    assert {gpu.uuid for gpu in profile.devices} == {FIRST, THIRD}
    assert len(set(profile.grouping.device.tolist())) == 2
    assert "one GPU" not in " ".join(profile.warnings)
    told = json.loads(as_json(profile, Inputs((tmp_path / "ray.flame",))))["devices"]
    assert {gpu["uuid"] for gpu in told} == {FIRST, THIRD}


def test_a_gpu_of_several_processes_is_one(
    injected_env: Callable[..., dict[str, str]], tmp_path: Path
) -> None:
    profile = workers(injected_env, tmp_path / "mps.flame", ["2", "2"])
    [gpu] = profile.devices
    assert (gpu.uuid, gpu.sources) == (THIRD, (0, 1))
    assert profile.activities.device.tolist() == [0, 0]
    assert sorted(profile.activities.process.tolist()) == [0, 1]
    inputs = Inputs((tmp_path / "mps.flame",))
    first, second = (source.label for source in profile.sources)
    assert f"{first}, {second}\n" in as_text(profile, inputs)
    told = json.loads(as_json(profile, inputs))
    assert [gpu["sources"] for gpu in told["devices"]] == [[0, 1]]
    assert [each["busy_ns"] for each in told["utilization"]] == [told["gpu_time_ns"]]
