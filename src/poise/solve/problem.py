"""The problem, options and results of solvers.

    w = (A + diag(cfm)) λ + b,   each row's (λ, w) on its law, each block's on its own

A is symmetric and positive semi-definite where it comes from mechanics (J M⁻¹ Jᵀ, the Delassus matrix). It is a matrix
or an operator that can only be applied. Rows are bounded (lo, hi), or follow a piecewise law, or belong to one block:

    Friction   a normal row (λ ≥ 0) and one or two tangent rows whose force is at most μ λ_normal. In a pyramid each
               tangent row has its own bound; in a cone it is on the whole tangent force, opposite to the sliding.
    Ball       rows with a bound on the length of their multipliers together: an actuator of limited strength.

Rows with bounds may have secondary targets (`Help`): they leave their targets, within tolerances, if another row is at
its own bound and needs help.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum, Flag, auto
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poise.solve.cones import NEVER_SLIPS
from poise.solve.laws import Law

Floats = NDArray[np.float64]


class Form(Flag):
    """Features of a problem, and those that a solver supports."""

    EQUALITY = auto()
    """Rows without bounds. Every solver supports them."""
    BOUNDS = auto()
    """Rows with lo ≤ λ ≤ hi: inequalities, motors."""
    LAWS = auto()
    """Piecewise laws: dead zones, springs that stiffen."""
    BALLS = auto()
    """Blocks with a bound on their norm."""
    PYRAMIDS = auto()
    """Friction, each tangent row by itself."""
    CONES = auto()
    """Friction, the true cone."""
    OPERATOR = auto()
    """A that can only be applied."""
    NONSYMMETRIC = auto()
    """A that is not symmetric."""
    STICK_SLIP = auto()
    """Friction with a smaller coefficient for contacts that slide than for those that stick."""
    SECONDARY = auto()
    """Rows that help others."""


@dataclass(frozen=True)
class Operator:
    """A matrix that can only be applied, with a known diagonal."""

    apply: Callable[[Floats], Floats]
    """x → A x."""
    diagonal: Floats


@dataclass(frozen=True)
class Friction:
    """Coulomb's law at a contact.

    With a sliding coefficient the law is no longer monotone. A contact at rest (w = 0 in all tangent rows) may use up
    to μ λ_normal; one that slides has the sliding coefficient. Between the two there may be two answers: the contact's
    earlier sliding decides.
    """

    normal: int
    tangents: tuple[int, ...]
    """One or two rows."""
    mu: float
    """The coefficient, the static one if there is a sliding one as well; with inf the contact never slips. Problems
    clamp it to `NEVER_SLIPS`."""
    cone: bool = True
    """False: a pyramid, with a bound on each tangent row."""
    sliding: float | None = None
    """Coefficient while the contact slides, at most μ; by default μ."""
    sliding_now: bool = False
    """Whether the contact slides now. Then it has the sliding coefficient, even if it comes to rest."""

    @property
    def drops(self) -> bool:
        """Whether the sliding coefficient is smaller than the static one."""
        return self.sliding is not None and self.sliding < self.mu

    @property
    def most(self) -> float:
        """The largest coefficient of the contact in its present state."""
        return self.sliding if self.sliding_now and self.sliding is not None else self.mu

    def capped(self) -> Friction:
        """The contact with coefficients of at most `NEVER_SLIPS`."""
        sliding = None if self.sliding is None else min(self.sliding, NEVER_SLIPS)
        return replace(self, mu=min(self.mu, NEVER_SLIPS), sliding=sliding)

    def plain(self, sliding: bool = False) -> Friction:
        """The contact with one coefficient: the sliding one, or the one of rest.

        >>> Friction(0, (1,), 0.8, sliding=0.5).plain(sliding=True).mu
        0.5
        """
        mu = self.sliding if sliding and self.sliding is not None else self.most
        return Friction(self.normal, self.tangents, mu, self.cone)


@dataclass(frozen=True)
class Ball:
    """A bound on the length of several multipliers together."""

    rows: tuple[int, ...]
    radius: float


@dataclass(frozen=True)
class Help:
    """A row with bounds, and rows with bounds that leave their targets when it is at its own (`secondary`)."""

    row: int
    helpers: tuple[int, ...]
    tolerances: tuple[float, ...]
    """Tolerances of the helpers: |w| at most; in units of w, 0 or more."""


@dataclass
class Problem:
    """One system to solve. The constructor checks all fields.

    >>> problem = Problem([[2.0, 0.0], [0.0, 1.0]], [-1.0, 1.0], lo=[0.0, 0.0])
    >>> problem.size, problem.forms() == Form.EQUALITY | Form.BOUNDS
    (2, True)
    """

    A: Any
    """(m, m) array, or an `Operator`."""
    b: Any
    """(m,)"""
    lo: Any = None
    """(m,) least multipliers; by default −inf."""
    hi: Any = None
    """(m,) greatest multipliers; by default inf."""
    cfm: Any = None
    """(m,) softness, added to the diagonal; by default 0."""
    laws: dict[int, Law] = field(default_factory=dict)
    """Rows that follow a piecewise law instead of bounds."""
    frictions: Sequence[Friction] = ()
    balls: Sequence[Ball] = ()
    helps: Sequence[Help] = ()

    def __post_init__(self) -> None:
        self.b = np.array(self.b, np.float64)
        if not isinstance(self.A, Operator):
            self.A = np.array(self.A, np.float64)
        m = self.b.size
        self.lo = np.full(m, -np.inf) if self.lo is None else np.array(self.lo, np.float64)
        self.hi = np.full(m, np.inf) if self.hi is None else np.array(self.hi, np.float64)
        self.cfm = np.zeros(m) if self.cfm is None else np.array(self.cfm, np.float64)
        self._check()
        if any(f.mu > NEVER_SLIPS for f in self.frictions):
            self.frictions = [f.capped() for f in self.frictions]

    @property
    def size(self) -> int:
        """Number of rows."""
        return int(np.size(self.b))

    @property
    def diagonal(self) -> Floats:
        """(m,) diagonal of A, softness included."""
        own = self.A.diagonal if isinstance(self.A, Operator) else np.diag(self.A)
        return np.asarray(own + self.cfm, np.float64)

    def matrix(self) -> Floats:
        """(m, m) A, softness included; an operator is applied column by column."""
        if isinstance(self.A, Operator):
            columns = [self.A.apply(unit) for unit in np.eye(self.size)]
            return np.array(columns).T.reshape(self.size, self.size) + np.diag(np.asarray(self.cfm))
        return np.asarray(self.A + np.diag(np.asarray(self.cfm)))

    def residual(self, lam: Floats) -> Floats:
        """(m,) w = (A + diag(cfm)) λ + b."""
        product = self.A.apply(lam) if isinstance(self.A, Operator) else self.A @ lam
        return np.asarray(product + self.cfm * lam + self.b)

    def forms(self) -> Form:
        """Features that a solver must support."""
        forms = Form.EQUALITY
        in_blocks = self.block_rows()
        plain = np.array([row not in in_blocks and row not in self.laws for row in range(self.size)], bool)
        if np.any(np.isfinite(self.lo)[plain]) or np.any(np.isfinite(self.hi)[plain]):
            forms |= Form.BOUNDS
        if self.laws:
            forms |= Form.LAWS
        if self.balls:
            forms |= Form.BALLS
        if any(not f.cone for f in self.frictions):
            forms |= Form.PYRAMIDS
        if any(f.cone for f in self.frictions):
            forms |= Form.CONES
        if any(f.drops for f in self.frictions):
            forms |= Form.STICK_SLIP
        if self.helps:
            forms |= Form.SECONDARY
        if isinstance(self.A, Operator):
            forms |= Form.OPERATOR
        elif not np.allclose(self.A, self.A.T, rtol=1e-10, atol=1e-12 * (np.abs(self.A).max(initial=0.0))):
            forms |= Form.NONSYMMETRIC
        return forms

    def block_rows(self) -> set[int]:
        """Rows that belong to a friction or a ball."""
        rows = {row for f in self.frictions for row in (f.normal, *f.tangents)}
        return rows | {row for ball in self.balls for row in ball.rows}

    def _check(self) -> None:
        m = self.size
        if np.ndim(self.b) != 1:
            raise ValueError(f"b has shape {np.shape(self.b)}; it must be one row of numbers")
        if not isinstance(self.A, Operator) and self.A.shape != (m, m):
            raise ValueError(f"A has shape {self.A.shape}; b needs ({m}, {m})")
        if isinstance(self.A, Operator) and np.shape(self.A.diagonal) != (m,):
            raise ValueError(f"the operator's diagonal has shape {np.shape(self.A.diagonal)}; b needs ({m},)")
        for name in ("lo", "hi", "cfm"):
            if np.shape(getattr(self, name)) != (m,):
                raise ValueError(f"{name} has shape {np.shape(getattr(self, name))}; b needs ({m},)")
        finite = [("b", self.b), ("cfm", self.cfm)]
        finite += [("the operator's diagonal", self.A.diagonal)] if isinstance(self.A, Operator) else [("A", self.A)]
        for name, array in finite:
            if not np.isfinite(array).all():
                raise ValueError(f"{name} must be finite")
        if np.any(np.asarray(self.cfm) < 0.0):
            raise ValueError("cfm must be 0 or more")
        lo, hi = np.asarray(self.lo), np.asarray(self.hi)
        if np.any(np.isnan(lo) | np.isnan(hi) | (lo > hi) | (lo == np.inf) | (hi == -np.inf)):
            raise ValueError("bounds: lo must not be above hi, and neither may be NaN")
        self._check_blocks(m)
        _check_helps(self.helps, m, self.block_rows() | set(self.laws))

    def _check_blocks(self, m: int) -> None:
        seen: set[int] = set(self.laws)
        groups = [(f.normal, *f.tangents) for f in self.frictions] + [tuple(ball.rows) for ball in self.balls]
        for row, law in self.laws.items():
            if not 0 <= row < m:
                raise ValueError(f"a law is given for row {row}; there are rows 0 to {m - 1}")
            if not isinstance(law, Law):
                raise ValueError(f"the law of row {row} is {law!r}; it must be a Law, such as at_least()")
        for rows in groups:
            for row in rows:
                if not 0 <= row < m:
                    raise ValueError(f"a block names row {row}; there are rows 0 to {m - 1}")
                if row in seen:
                    raise ValueError(f"row {row} belongs to two blocks or laws")
                seen.add(row)
        for f in self.frictions:
            if len(f.tangents) not in (1, 2) or not f.mu >= 0.0:
                raise ValueError(f"friction at row {f.normal}: it needs one or two tangents and a μ ≥ 0, found {f}")
            if f.sliding is not None and not 0.0 <= f.sliding <= f.mu:
                raise ValueError(
                    f"friction at row {f.normal}: the sliding coefficient is {f.sliding}; it must be 0 to μ = {f.mu}"
                )
        for ball in self.balls:
            if not ball.rows or not ball.radius >= 0.0:
                raise ValueError(f"a ball needs rows and a radius of 0 or more, found {ball}")


def _check_helps(helps: Sequence[Help], m: int, taken: set[int]) -> None:
    tolerances: dict[int, float] = {}
    helped: set[int] = set()
    for one in helps:
        if not one.helpers or len(one.tolerances) != len(one.helpers):
            raise ValueError(f"row {one.row} needs helpers, each with a tolerance; found {one}")
        if one.row in helped:
            raise ValueError(f"row {one.row} is helped twice; name all its helpers at once")
        if len(set(one.helpers)) != len(one.helpers):
            raise ValueError(f"row {one.row} names a helper twice: {one.helpers}")
        helped.add(one.row)
        for row in (one.row, *one.helpers):
            if not isinstance(row, int | np.integer) or isinstance(row, bool) or not 0 <= row < m:
                raise ValueError(f"help names row {row!r}; there are rows 0 to {m - 1}")
            if row in taken:
                raise ValueError(f"row {row} has a law or is in a block; only rows with bounds help or are helped")
        for row, tolerance in zip(one.helpers, one.tolerances, strict=True):
            if not (np.isfinite(tolerance) and tolerance >= 0.0):
                raise ValueError(f"helper {row} has a tolerance of {tolerance}; it must be finite, 0 or more")
            if tolerances.setdefault(int(row), float(tolerance)) != tolerance:
                raise ValueError(f"helper {row} has two tolerances, {tolerances[int(row)]} and {tolerance}")
    if both := sorted(helped & set(tolerances)):
        raise ValueError(f"row {both[0]} helps and is helped; it can do only one of these")


class Status(Enum):
    """How a solver ended."""

    SOLVED = "solved"
    """The tolerance is met. Not all solvers find out whether the answer is unique."""
    SINGULAR = "singular"
    """The tolerance is met, but other multipliers solve the problem too; for linear systems this is the shortest."""
    CONFLICTING = "conflicting"
    """No answer meets all rows; this one is the best that the solver found."""
    STOPPED = "stopped"
    """Out of iterations; the best answer so far."""


@dataclass
class Result:
    """Result of a solver. `lam` is always finite."""

    lam: Floats
    """(m,) multipliers."""
    w: Floats
    """(m,) residuals at these multipliers."""
    status: Status
    iterations: int
    natural: float
    """Largest natural residual over all rows and blocks (see `residuals.natural_map`), in units of w."""
    complementarity: float
    """Largest product |λ w| of a row for which one of them should be zero, in units of λ w."""
    violation: float
    """Largest distance of multipliers from their bounds, in units of λ."""
    history: list[float] = field(default_factory=list)
    """Natural residual after each iteration, if the solver records it."""

    @property
    def ok(self) -> bool:
        """Whether the tolerance is met."""
        return self.status in (Status.SOLVED, Status.SINGULAR)


@dataclass(frozen=True)
class Options:
    """Options of all solvers."""

    tolerance: float = 1e-9
    """Natural residual at which the problem counts as solved, relative to the largest |b| that a row can remove alone
    (`residuals.size_of`; or to 1 if b is zero)."""
    iterations: int = 1000
    """Most sweeps, pivots or steps."""
    warm: Floats | None = None
    """(m,) multipliers of a warm start, all finite."""
    history: bool = False
    """Record the residual after each iteration."""
