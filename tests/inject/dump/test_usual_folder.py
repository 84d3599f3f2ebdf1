"""The folder in /tmp that recordings go to by themselves, and who may have made it before.

Each test has a /tmp of its own, in which another user can do what users can do there.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.inject.scenes import program
from tests.support.waiting import PATIENCE

USER, SOMEBODY = 64001, 64002
USUAL = f"/tmp/flame-{USER}"
pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

# Runs in a name space of its own; `prepare` has made what is there before. Twice, as two users of
# one folder.
SCRIPT = f"""
import glob, json, os, stat, subprocess, sys

prepare, mode, program = sys.argv[1:]
image = open(program, "rb").read()
subprocess.run(["mount", "-t", "tmpfs", "-o", f"mode={{mode}}", "tmpfs", "/tmp"], check=True)
with open("/tmp/program", "wb") as copy:
    copy.write(image)
os.chmod("/tmp/program", 0o755)
USUAL, USER, SOMEBODY = {USUAL!r}, {USER}, {SOMEBODY}
exec(prepare)
command = ["/tmp/program", "nothing"]
said = []
for _ in range(2):
    done = subprocess.run(command, env={{}}, user=USER, group=USER, extra_groups=[],
                          capture_output=True, text=True, check=True)
    said.append([done.stdout.strip(), done.stderr.partition(": ")[2].strip()])

def described(path):
    status = os.lstat(path)
    dumps = len(glob.glob(path + "/*.fdump")) if stat.S_ISDIR(status.st_mode) else 0
    return [status.st_uid, stat.S_IMODE(status.st_mode), dumps]

print(json.dumps([said, {{path: described(path) for path in glob.glob(USUAL + "*")}}]))
"""
OPEN = "os.mkdir(USUAL); os.chown(USUAL, USER, USER); os.chmod(USUAL, 0o777)"
BY_SOMEBODY = "os.mkdir(USUAL, 0o700); os.chown(USUAL, SOMEBODY, SOMEBODY)"
LINK = "os.mkdir('/tmp/x', 0o777); os.symlink('/tmp/x', USUAL)"
FILE = "open(USUAL, 'w').close()"
LIKE_OURS = "os.mkdir(USUAL + '.aaaaaa', 0o777); os.chown(USUAL + '.aaaaaa', SOMEBODY, SOMEBODY)"


@pytest.fixture
def two_runs(buildable: None) -> Any:
    def run(prepare: str, mode: str = "1777") -> tuple[list[list[str]], dict[str, list[int]]]:
        command = ["unshare", "-m", sys.executable, "-c", SCRIPT, prepare, mode, str(program())]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE)
        if done.returncode and "unshare" in done.stderr:
            pytest.skip(f"no name space: {done.stderr.strip()}")
        assert done.returncode == 0, done.stderr
        said, there = json.loads(done.stdout)
        return said, there

    return run


@pytest.mark.parametrize("prepare", [OPEN, BY_SOMEBODY, LINK, FILE])
def test_where_others_have_it_another_is_made_and_named(two_runs: Any, prepare: str) -> None:
    said, there = two_runs(f"{prepare}; {LIKE_OURS}")
    (private,) = set(there) - {USUAL, f"{USUAL}.aaaaaa"}
    assert there[private] == [USER, 0o700, 2]
    assert there[USUAL][2] == there[f"{USUAL}.aaaaaa"][2] == 0
    assert said == [["", f"others can write to {USUAL}: recording to {private}"]] * 2


def test_where_no_other_can_be_made_that_is_said(two_runs: Any) -> None:
    said, there = two_runs(BY_SOMEBODY, mode="755")
    hint = "(FLAME_DIR names another folder)"
    assert said == [["no dump", f"nothing is recorded: others can write to {USUAL} {hint}"]] * 2
    assert there[USUAL][2] == 0


def test_it_is_made_and_used(two_runs: Any) -> None:
    said, there = two_runs("")
    assert (said, there) == ([["", ""]] * 2, {USUAL: [USER, 0o700, 2]})


def test_one_that_is_closed_to_others_is_used(two_runs: Any) -> None:
    said, there = two_runs(f"{OPEN}; os.chmod(USUAL, 0o755)")
    assert (said, there) == ([["", ""]] * 2, {USUAL: [USER, 0o755, 2]})
