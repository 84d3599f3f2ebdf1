"""What files that are opened together are called."""

from __future__ import annotations

from pathlib import Path

from flame.core.loading.inputs import Inputs

URL = "https://me:s3cret@h/a.json?sig=topsecret"


def test_what_is_secret_in_a_url_is_spelled_only_in_full() -> None:
    paths = (Path("b.json"), Path("/tmp/0/a.json"), Path("/tmp/1/stdin"), Path("-"))
    inputs = Inputs(paths, given=((paths[1], URL), (paths[2], "-")))
    assert inputs.spelled == ["b.json", "https://h/a.json", "-", "./-"]
    assert inputs.spelled_in_full == ["b.json", URL, "-", "./-"]
