"""Time that the stages of steps take, for worlds that are asked for it."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import Any

from poise.formulations.acceleration import Accelerated

_STAGES = {"free_motion": "free motion", "_find": "solve"}
"""Methods of a stepper at velocity level, by the stage that they are."""


class Clock:
    """Puts itself before the methods of one stepper; those of its class stay as they are."""

    def __init__(self, stepper: Any) -> None:
        self._spent = dict.fromkeys(("whole", "step", "free motion", "collide", "solve"), 0.0)
        self._start = 0.0
        self._timed: list[tuple[Any, str]] = []
        self._time(stepper, "step", "step")
        if isinstance(stepper, Accelerated):
            self._time(stepper, "_forces", "solve")
        for name, stage in _STAGES.items():
            self._time(stepper.inner if isinstance(stepper, Accelerated) else stepper, name, stage)
        self._time(stepper.collider, "find", "collide")

    def _time(self, owner: Any, name: str, stage: str) -> None:
        run: Callable[..., Any] = getattr(owner, name)

        def timed(*args: Any, **options: Any) -> Any:
            start = perf_counter()
            try:
                return run(*args, **options)
            finally:
                self._spent[stage] += perf_counter() - start

        setattr(owner, name, timed)
        self._timed.append((owner, name))

    def begin(self) -> None:
        """A step begins."""
        self._spent = dict.fromkeys(self._spent, 0.0)
        self._start = perf_counter()

    def finish(self) -> None:
        """It ends."""
        self._spent["whole"] = perf_counter() - self._start

    def told(self) -> dict[str, float]:
        """Seconds of the last step by stage; "act" is what controllers, functions and events took."""
        spent = self._spent
        stages = {name: spent[name] for name in ("free motion", "collide", "solve")}
        rest = spent["step"] - sum(stages.values())
        return {"act": spent["whole"] - spent["step"]} | stages | {"rest": rest, "whole": spent["whole"]}

    def stop(self) -> None:
        """Leave the stepper as it was."""
        for owner, name in self._timed:
            delattr(owner, name)
        self._timed.clear()
