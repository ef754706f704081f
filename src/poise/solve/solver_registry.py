"""The solvers, and the problems that each supports. A new solver is one file and one line here."""

from __future__ import annotations

from pkgutil import resolve_name
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike

from poise.solve.problem import Form, Options, Problem, Result


class Solver(Protocol):
    """Interface of a solver: options of its own in its constructor, and these two."""

    takes: ClassVar[Form]
    """The forms that it can solve."""

    def solve(self, problem: Problem, options: Options = ...) -> Result:
        """The answer, with its measured status; never an internal exception, never NaN."""
        ...


#: name → module and class, in the order in which they are offered
SOLVERS: dict[str, str] = {
    "direct": "poise.solve.direct:Direct",
    "cg": "poise.solve.cg:CG",
    "pgs": "poise.solve.pgs:PGS",
    "dantzig": "poise.solve.dantzig:Dantzig",
    "lemke": "poise.solve.lemke:Lemke",
}


class UnsupportedForm(ValueError):
    """A solver does not support a problem; the message names solvers that do."""


def solver_class(name: str) -> type[Solver]:
    """A solver by its name."""
    if name not in SOLVERS:
        raise ValueError(f"no solver is called {name!r}; there are {', '.join(SOLVERS)}")
    found: type[Solver] = resolve_name(SOLVERS[name])
    return found


def takers(forms: Form) -> list[str]:
    """Names of the solvers that take a problem with these forms."""
    return [name for name in SOLVERS if forms in solver_class(name).takes]


def check_form(solver: Solver, problem: Problem, options: Options | None = None) -> None:
    """Raise if a solver does not support a problem, with the solvers that do; check the warm start."""
    missing = problem.forms() & ~type(solver).takes
    if missing:
        others = ", ".join(takers(problem.forms())) or "none"
        what = ", ".join(form.name.lower() for form in Form if form in missing and form.name)
        raise UnsupportedForm(f"{type(solver).__name__} does not take {what}; solvers that take this problem: {others}")
    if options is not None:
        check_warm(problem, options.warm)


def check_warm(problem: Problem, warm: ArrayLike | None) -> None:
    """Raise if a warm start does not fit the problem, whether the solver uses it or not."""
    if warm is None:
        return
    shape = np.shape(warm)
    if shape != (problem.size,) or not np.isfinite(warm).all():
        found = f"shape {shape}" if shape != (problem.size,) else "NaN or infinity"
        raise ValueError(f"warm has {found}; it must be {problem.size} finite multipliers")
