"""PyTorch profiler traces, real and random ones, against an independent reading, row by row."""

from __future__ import annotations

from collections import Counter, defaultdict
from functools import cache

import numpy as np
import pytest

import flame
from flame.core.frames import Frame, Kind
from flame.core.marks import MARKS
from flame.core.options import LoadOptions
from flame.core.profile import Profile
from flame.core.tree import StackTree
from tests import naive_kineto as naive
from tests.conftest import TRACES
from tests.naive_kineto import Range, Work

KINETO_TRACES = sorted(path.name for path in TRACES.glob("kineto/*.json.gz"))
every_trace = pytest.mark.parametrize("name", KINETO_TRACES)
