"""Connect to a Dask cluster: one that runs, one on this machine, one that Slurm is asked for."""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Iterator
from concurrent.futures import TimeoutError as LateError
from contextlib import ExitStack, contextmanager, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dask
import msgspec
from distributed import Client, LocalCluster

from flame.core.errors import InputError, UsageError
from flame.core.external import find_program, python_command, search_path
from flame.engines.cluster import Cluster, Patience, in_thread
from flame.engines.dask_engine import DaskEngine

_CONNECT = 10
"""Seconds in which a scheduler has to answer."""
USUAL = Patience(30.0, 30.0)
QUEUE = Patience(None, 600.0)
"""Of jobs that may wait for long until they run."""
_END = 5.0
_LARGEST = 1 << 20
"""Bytes read of a scheduler's file, which has a few thousand: more is another file, or endless."""
_LOGGERS = ("distributed", "distributed.client", "tornado.application")


@contextmanager
def dask_engine(where: str, workers: int) -> Iterator[tuple[DaskEngine, str]]:
    """Yield an engine on the cluster ``where``, and a warning, '' for none.

    ``where`` is the address of a scheduler, the file it has written, ``local`` or ``slurm``; of the
    latter two as many ``workers`` are started. Raises InputError where there is none.
    """
    for name in _LOGGERS:  # Each has a level of its own.
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with ExitStack() as stack:
        stack.enter_context(_isolated())
        if where == "local":
            address, patience = stack.enter_context(_local(workers)), USUAL
        elif where == "slurm":
            address, patience = stack.enter_context(_slurm(workers)), QUEUE
        else:
            address, patience = _address_of(where), USUAL
        engine = DaskEngine(Cluster(_connect(address, where), patience))
        stack.callback(engine.close)
        yield engine, _warning(address if isinstance(address, str) else "")


@contextmanager
def _isolated() -> Iterator[None]:
    """Have Dask run no program and import no module of the current folder in the block.

    It starts Pythons with ``-c``, anew where one dies, and programs by name: ``uname``, ``sbatch``.
    """
    own = {"PYTHONSAFEPATH": "1", "PATH": search_path() or os.defpath}
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name)
            os.environ.update({} if value is None else {name: value})


@contextmanager
def _local(workers: int) -> Iterator[Any]:
    cluster = LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        dashboard_address=None,
        silence_logs=logging.CRITICAL,
        host="127.0.0.1",
    )
    with _closed(cluster):
        yield cluster


@contextmanager
def _slurm(workers: int) -> Iterator[Any]:
    try:
        from dask_jobqueue import SLURMCluster
    except ModuleNotFoundError as error:
        need = f"--dask slurm needs {error.name}, which is not installed"
        raise UsageError(f"{need}: pip install dask-jobqueue") from None
    if find_program("sbatch") is None:  # Dask tries it in the background, and waits for workers.
        raise InputError("--dask slurm: no sbatch in PATH: run it where jobs can be submitted")
    try:
        cluster = SLURMCluster(python=_python_of_jobs())
        cluster.scale(workers)
    except (ValueError, OSError, RuntimeError) as error:
        hint = "see jobqueue.slurm in ~/.config/dask/jobqueue.yaml"
        raise InputError(f"--dask slurm: no jobs can be started: {error} ({hint})") from None
    with _closed(cluster):
        yield cluster


def _python_of_jobs() -> str:
    """Return the words that start Python in a job, which begins in the current folder.

    Slurm may be told to give it none of our environment.
    """
    named = dask.config.get("jobqueue.slurm.python", None)
    return f"{named} -P" if named else shlex.join(python_command())


@contextmanager
def _closed(cluster: Any) -> Iterator[None]:
    """Close a cluster of our own at the end; it has a few seconds for that."""
    try:
        yield
    finally:
        with suppress(Exception):
            in_thread(lambda: cluster.close(timeout=_END)).result(_END)


def _address_of(where: str) -> str:
    """Return the address of a scheduler, which may be in a file that it has written."""
    if "://" in where:
        return where
    try:
        with Path(where).open("rb") as file:
            content = msgspec.json.decode(file.read(_LARGEST))
        return str(content["address"])
    except OSError as error:
        what = "no address (tcp://HOST:PORT), not local or slurm, and no file of a scheduler"
        raise InputError(f"--dask {where}: is {what}: {error.strerror}") from None
    except (msgspec.DecodeError, KeyError, TypeError):
        raise InputError(f"--dask {where}: is not the file of a Dask scheduler") from None


def _connect(address: Any, where: str) -> Client:
    # Dask itself does not keep to that time where another kind of server answers, or nothing does.
    client = in_thread(lambda: Client(address, timeout=_CONNECT, set_as_default=False))
    try:
        return client.result(_CONNECT)
    except LateError:
        raise InputError(f"--dask {where}: no scheduler of Dask answers there") from None
    except Exception as error:  # What it makes of the answers of others is not documented.
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise InputError(f"--dask {where}: no connection to the scheduler: {reason}") from None


def _warning(address: str) -> str:
    """Warn of a connection that others may listen to."""
    parts = urlsplit(address)
    if parts.scheme != "tcp" or _is_loopback(parts.hostname or ""):
        return ""
    risk = "whoever reaches the scheduler can run programs on its workers and here"
    return f"{address} is not encrypted: {risk}; tls:// is Dask's remedy"


def _is_loopback(host: str) -> bool:
    with suppress(ValueError):
        return ip_address(host).is_loopback
    return host == "localhost"
