"""The table of the entries or Python functions that `step` calls as its stages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from poise.formulations.step import N_STORES, STEP
from poise.kernel.memory import F64, Block

Array = NDArray[Any]


class Stage(Protocol):
    """A `Bound` entry, or a `Callback`."""

    @property
    def front(self) -> int:
        """Address to call, with the table and with numbers."""

    @property
    def table(self) -> int:
        """Address of the table."""


@dataclass(frozen=True)
class Stages:
    """The stages of a step. Those that depend on the store of the constraints are lists by store."""

    free_motion: Stage
    detect: Stage
    prepare: Stage
    advance: Sequence[Stage | None]
    """(N_STORES²) by store of the constraints, and by store of the constraints of the step before."""
    choose: Stage | None = None
    commands: Sequence[Stage] = ()
    measure: Sequence[Stage] = ()
    watch: Sequence[Stage] = ()
    observe: Sequence[Stage] = ()

    def block(self, **memory: Any) -> Block:
        """The table of a step, with the memory that its stages share."""
        calls = {"free_motion": self.free_motion, "detect": self.detect, "prepare": self.prepare, "choose": self.choose}
        by_store = {"measure": self.measure, "watch": self.watch, "observe": self.observe}
        advance = next(one for one in self.advance if one is not None)
        return STEP.block(
            F64,
            n_commands=len(self.commands),
            command=np.array([one.front for one in self.commands], np.int64),
            command_table=_tables(self.commands),
            **{name: 0 if one is None else one.front for name, one in calls.items()},
            **{f"{name}_table": 0 if one is None else one.table for name, one in calls.items()},
            **{name: stages[0].front if stages else 0 for name, stages in by_store.items()},
            **{f"{name}_table": _tables(stages) if stages else N_STORES for name, stages in by_store.items()},
            advance=advance.front,
            advance_table=_tables(self.advance),
            **memory,
        )

    @property
    def held(self) -> tuple[Any, ...]:
        """All stages. Keep them as long as the table, which holds only their addresses."""
        single = (self.free_motion, self.detect, self.prepare, self.choose)
        return (*single, *self.advance, *self.commands, *self.measure, *self.watch, *self.observe)


def _tables(stages: Sequence[Stage | None]) -> Array:
    return np.array([0 if one is None else one.table for one in stages], np.int64)
