"""Check on a machine with a GPU what flame takes for granted of CUPTI, and what it records.

`command.py` is the command, `checks/` has the checks. `runner.py` starts each in a process of its
own, waits for it, and ends all that it has left behind. A check takes a `Bench`, runs programs of
`workloads/` on it, and holds what came of them against what must be: a `Finding`. `probe/` is a
library that asks CUPTI alone, without flame.
"""
