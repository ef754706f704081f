"""Runs on an existing cluster of Dask or Ray."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Generator, Iterable, Iterator
from contextlib import suppress
from itertools import islice
from time import sleep
from typing import Any
from uuid import uuid4

from poise.batch.task import FAILED, LOST, Result, Task, note_of, run_task
from poise.model.errors import SceneError

PATIENCE = 30.0
"""Timeout of the connection to a cluster, and of its first worker; s."""
PAUSE = 0.01
"""Time between two polls for results; s."""


def check_dask() -> Any:
    """The package, or ImportError with the command that installs it."""
    try:
        import distributed
    except ImportError:
        raise ImportError("Dask needs distributed: pip install distributed, or the extra poise[dask]") from None
    return distributed


def check_ray() -> Any:
    """The package, or ImportError with the command that installs it."""
    try:
        import ray
    except ImportError:
        raise ImportError("Ray is missing: pip install ray, or the extra poise[ray]") from None
    return ray


def run_on_dask(tasks: Iterator[Task], address: str) -> Generator[Result, None, None]:
    """Runs on the workers of a Dask scheduler, yielded as they end. Scenes are sent there, without their files."""
    distributed = check_dask()
    client = _dask_client(distributed, address)
    with client:
        threads = sum(client.nthreads().values())
        token = uuid4().hex[:8]
        refused: list[Result] = []
        sent: dict[Any, Task] = {}

        def send(count: int) -> None:
            for task in islice(_packed(tasks, refused), count):
                sent[client.submit(run_task, task, key=f"poise-{token}-{task.run}", pure=False)] = task

        send(2 * threads)
        yield from _emptied(refused)
        while sent:
            future = _ended_future(client, sent, f"--dask {address}")
            task = sent.pop(future)
            try:
                yield future.result()
            except (distributed.scheduler.KilledWorker, distributed.client.FutureCancelledError) as error:
                yield Result(task.run, LOST, 0.0, {}, f"its worker ended: {type(error).__name__}")
            except Exception as error:
                raise _cannot(error, f"--dask {address}") from error
            future.release()
            send(1)
            yield from _emptied(refused)


def _ended_future(client: Any, sent: Iterable[Any], field: str) -> Any:
    """The next future with a result. Dask's own function waits forever if a scheduler does not come back."""
    while True:
        if client.status in ("closing", "closed"):
            what = "the scheduler of Dask has gone, and has not come back"
            raise SceneError(f"{what}; what is done is kept, and the same sweep goes on", field=field)
        for future in sent:
            if future.status in ("finished", "error", "cancelled"):
                return future
        sleep(PAUSE)


def _dask_client(distributed: Any, address: str) -> Any:
    field = f"--dask {address}"
    scheme, _, place = address.rpartition("://")
    if scheme in ("", "tcp", "tls", "ws", "wss"):
        _host_and_port(place, field, "HOST:PORT or tcp://HOST:PORT")
    try:
        client = distributed.Client(address, timeout=PATIENCE, set_as_default=False)
    except (OSError, TimeoutError, ValueError, TypeError) as error:
        raise SceneError(f"there is no scheduler of Dask: {_line(error)}", field=field) from None
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        client.close()
        raise SceneError(f"the scheduler has had no workers for {PATIENCE:g} s", field=field) from None
    return client


def run_on_ray(tasks: Iterator[Task], address: str) -> Generator[Result, None, None]:
    """Runs on the nodes of a Ray cluster, yielded as they end. Scenes are sent there, without their files."""
    ray = check_ray()
    ours = _join_ray(ray, address)
    try:
        remote = ray.remote(num_cpus=1, max_retries=2)(run_task)
        width = 2 * max(1, int(ray.cluster_resources().get("CPU", 1)))
        refused: list[Result] = []
        sent: dict[Any, Task] = {}

        def send(count: int) -> None:
            for task in islice(_packed(tasks, refused), count):
                sent[remote.remote(task)] = task

        send(width)
        yield from _emptied(refused)
        while sent:
            ready, _ = ray.wait(list(sent), num_returns=1)
            task = sent.pop(ready[0])
            try:
                yield ray.get(ready[0])
            except ray.exceptions.WorkerCrashedError as error:
                yield Result(task.run, LOST, 0.0, {}, f"its worker ended: {_line(error)}")
            except Exception as error:
                raise _cannot(error, f"--ray {address}") from error
            send(1)
            yield from _emptied(refused)
    finally:
        if ours:
            ray.shutdown()


def _join_ray(ray: Any, address: str) -> bool:
    """Connect to a cluster, unless this process is connected already; returns whether it did."""
    if ray.is_initialized():
        return False
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    field = f"--ray {address}"
    _reach(address, field)  # Ray itself would wait for minutes
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
    except (OSError, RuntimeError, ValueError, TimeoutError, AssertionError) as error:
        with suppress(Exception):
            ray.shutdown()
        raise SceneError(f"there is no cluster of Ray: {_line(error)}", field=field) from None
    return True


def _reach(address: str, field: str) -> None:
    """Check that an address accepts connections."""
    if address == "auto":
        return
    place = _host_and_port(address.removeprefix("ray://"), field, "HOST:PORT, ray://HOST:PORT or auto")
    try:
        socket.create_connection(place, timeout=PATIENCE).close()
    except OSError as error:
        raise SceneError(f"there is no cluster of Ray: {error.strerror or error}", field=field) from None


def _host_and_port(place: str, field: str, right: str) -> tuple[str, int]:
    """Both parts of an address, or SceneError with the right form."""
    host, _, port = place.rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 1 << 16:
        raise SceneError(f"must be {right}", field=field)
    return host.strip("[]"), int(port)


def _packed(tasks: Iterator[Task], refused: list[Result]) -> Iterator[Task]:
    """Tasks with their scenes; tasks without a valid scene are results at once."""
    for task in tasks:
        try:
            packed = task.packed()
        except Exception as error:
            metrics = {metric.name: float("nan") for metric in task.how.metrics}
            refused.append(Result(task.run, FAILED, 0.0, metrics, note_of(error)))
            continue
        yield packed


def _emptied(results: list[Result]) -> Iterator[Result]:
    while results:
        yield results.pop()


def _cannot(error: BaseException, field: str) -> SceneError:
    """The error of a run that failed outside of the run itself, such as in its transport."""
    what = "its workers need the same Poise as this process" if isinstance(error, ImportError) else "a run was not done"
    return SceneError(f"{what}: {type(error).__name__}: {_line(error)}", field=field)


def _line(error: BaseException) -> str:
    """An error in one line."""
    text = " ".join(str(error).split())
    return text[:160].rstrip(".") or type(error).__name__
