"""Timing of the stages of steps."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

from poise.formulations.acceleration_level.acceleration_driver import Accelerated
from poise.formulations.step import DETECTION, FREE_MOTION, SOLUTION, TIMED, WHOLE_STEP
from poise.formulations.step_loop import March
from poise.kernel.clock import seconds_per_tick


class Clock:
    """Times the stages of one world's steps: at the stage boundaries of compiled code, and in Python around the methods
    of the driver.
    """

    def __init__(self, stepper: Any) -> None:
        inner = stepper.inner if isinstance(stepper, Accelerated) else stepper
        self._march: March = inner.march
        self._march.time_stages(True)
        self._spent = self._march.spent
        self._spent[...] = 0.0
        self._start = self._whole = 0.0
        self._timed: list[tuple[Any, str]] = []
        self._time(stepper, "step", WHOLE_STEP)
        if isinstance(stepper, Accelerated):
            self._time(stepper, "_forces", SOLUTION)
            self._time(stepper.collider, "find", DETECTION)
        self._time(inner, "free_motion", FREE_MOTION)

    def _time(self, owner: Any, name: str, stage: int) -> None:
        run: Callable[..., Any] = getattr(owner, name)

        def timed(*args: Any, **options: Any) -> Any:
            start = perf_counter()
            try:
                return run(*args, **options)
            finally:
                self._spent[stage] += (perf_counter() - start) / seconds_per_tick()

        setattr(owner, name, timed)
        self._timed.append((owner, name))

    def begin(self) -> None:
        """Start timing a step that runs in Python."""
        self._spent[...] = 0.0
        self._start = perf_counter()

    def finish(self) -> None:
        """End timing that step."""
        self._whole = perf_counter() - self._start

    def finish_compiled(self) -> None:
        """End timing of steps in compiled code, which have no callbacks around them."""
        self._whole = float(self._spent[WHOLE_STEP]) * seconds_per_tick()

    def told(self) -> dict[str, float]:
        """Seconds of the last step by stage; "act" is the time of controllers, step functions and events."""
        spent = self._spent * seconds_per_tick()
        stages = {TIMED[k]: float(spent[k]) for k in (FREE_MOTION, DETECTION, SOLUTION)}
        step = float(spent[WHOLE_STEP])
        return {"act": self._whole - step} | stages | {"rest": step - sum(stages.values()), "whole": self._whole}

    def stop(self) -> None:
        """Restore the methods of the driver."""
        self._march.time_stages(False)
        for owner, name in self._timed:
            delattr(owner, name)
        self._timed.clear()
