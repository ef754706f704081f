"""Dense algebra of Poise uses no more BLAS threads than asked for, and the process keeps its own number."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pytest

import poise
from poise.kernel import blas
from poise.kernel.blas import few_blas_threads, numpys_blas
from poise.model import Body, Inertia
from poise.solve.problem import Problem
from poise.solve.solver_registry import solver_class

SOURCES = str(Path(poise.__file__).parent)
BLAS = numpys_blas()
pytestmark = pytest.mark.skipif(BLAS is None, reason="the threads of this NumPy's BLAS cannot be set")


@pytest.fixture
def three() -> Iterator[None]:
    """A process that has three threads of BLAS, as a user's own code may want them."""
    assert BLAS is not None
    before = BLAS.get()
    BLAS.set(3)
    yield
    BLAS.set(before)


@few_blas_threads
def threads() -> int:
    return BLAS.get()


@pytest.mark.usefixtures("three")
def test_one_thread_inside_and_the_own_number_outside() -> None:
    assert (threads(), BLAS.get()) == (1, 3)


@pytest.mark.usefixtures("three")
def test_the_number_is_put_back_after_an_error_and_after_calls_in_calls() -> None:
    @few_blas_threads
    def fail() -> None:
        assert (threads(), BLAS.get()) == (1, 1)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert BLAS.get() == 3


@pytest.mark.usefixtures("three")
def test_threads_that_come_and_go_in_any_order_leave_the_number_as_it_was() -> None:
    """The first to come leaves first: who came second must not put back the limit that it found."""
    came, left, seen = threading.Event(), threading.Event(), []

    @few_blas_threads
    def second() -> None:
        came.set()
        assert left.wait(10.0)
        seen.append(BLAS.get())

    other = threading.Thread(target=second)

    @few_blas_threads
    def first() -> None:
        other.start()
        assert came.wait(10.0)

    first()
    left.set()
    other.join()
    assert (seen, BLAS.get()) == ([1], 3)


def four_bars(count: int) -> poise.Scene:
    """A row of parallelograms: `count` + 1 cranks, and bars between their ends."""

    def bar(name: str, com: tuple[float, float, float]) -> Body:
        return Body(name, inertia=Inertia(1.0, com=com, moments=(0.1, 0.1, 0.1)))

    scene = poise.Scene()
    for k in range(count + 1):
        scene.hinge(None, bar(f"crank{k}", (0, 0, 0.5)), axis="y", position=(k, 0, 0))
    for k in range(count):
        scene.hinge(f"crank{k}", bar(f"bar{k}", (0.5, 0, 0)), axis="y", position=(0, 0, 1))
        ends = {"anchor_first": (1, 0, 0), "anchor_second": (0, 0, 1)}
        scene.loop("hinge", f"bar{k}", f"crank{k + 1}", f"close{k}", axis="y", **ends)
    return scene


def numbers_seen(run: Any, *files: str) -> set[int]:
    """Threads of BLAS at every call and return of a Python function in some files of Poise."""
    seen: set[int] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        name = frame.f_code.co_filename
        if event in ("call", "return") and name.startswith(SOURCES) and any(file in name for file in files):
            seen.add(BLAS.get())

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    return seen


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("kind", [poise.Reduced, poise.Maximal])
def test_a_step_at_acceleration_level_uses_one_thread(kind: Any) -> None:
    world = four_bars(8).build(kind(level="acceleration"), dt=1e-3)
    assert numbers_seen(world.step, "solve", "acceleration_solve") == {1}
    assert BLAS.get() == 3


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("name", ["direct", "cg", "pgs", "dantzig", "lemke"])
def test_solvers_use_one_thread(name: str) -> None:
    J = np.random.default_rng(3).normal(size=(150, 200))
    problem, solver = Problem(J @ J.T, J @ np.ones(200)), solver_class(name)()
    assert numbers_seen(lambda: solver.solve(problem), f"{os.sep}solve{os.sep}") == {1}
    assert BLAS.get() == 3


@pytest.mark.parametrize(("asked", "given"), [(None, 1), ("", 1), ("2", 2)])
def test_more_threads_where_they_are_asked_for(asked: str | None, given: int) -> None:
    code = (
        "from poise.kernel.blas import few_blas_threads, numpys_blas; b = numpys_blas(); b.set(3); "
        "print(few_blas_threads(b.get)(), b.get())"
    )
    variables = {key: value for key, value in os.environ.items() if key != blas.VARIABLE}
    variables |= {"PYTHONPATH": str(Path(SOURCES).parent)} | ({} if asked is None else {blas.VARIABLE: asked})
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=variables, check=False)
    assert done.stdout == f"{given} 3\n", done.stderr


@pytest.mark.parametrize("wrong", ["0", "-1", "many", "1.5"])
def test_what_is_no_number_of_threads_is_refused(wrong: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(blas.VARIABLE, wrong)
    with pytest.raises(ValueError, match=f"POISE_BLAS_THREADS is '{wrong}': a number of threads, 1 or more"):
        blas.asked_for.__wrapped__()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.usefixtures("three")
def test_a_forked_process_has_its_own_number() -> None:
    @few_blas_threads
    def fork() -> int:
        child = os.fork()
        if child == 0:
            os._exit(BLAS.get())
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    assert fork() == 3
