"""The problem that solvers see, what they are told, and what they answer.

    w = (A + diag(cfm)) λ + b,   each row's (λ, w) on its law, each block's on its own

A is symmetric and positive semi-definite where it comes from mechanics (J M⁻¹ Jᵀ, the Delassus matrix). It is given as
a matrix or as an operator that can only be applied. Rows are bounded (lo, hi), or follow a piecewise law, or
belong to one block:

    Friction   a normal row (λ ≥ 0) and one or two tangent rows whose force is at most μ λ_normal. As a pyramid each
               tangent row is bounded by itself; as a cone the tangent force as a whole, which opposes the sliding.
    Ball       rows whose multipliers together are no longer than a radius: an actuator of limited strength.

Rows with bounds may have secondary targets (`Help`): they give way, within tolerances, where another row is at its own
bound and needs help.
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
    """What a problem asks of a solver, and what a solver takes."""

    EQUALITY = auto()
    """Rows without bounds. Every solver takes them."""
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
    """Friction that is less where contacts slide than where they stick."""
    SECONDARY = auto()
    """Rows that help others."""


@dataclass(frozen=True)
class Operator:
    """A matrix that can only be applied; its diagonal is known."""

    apply: Callable[[Floats], Floats]
    """x → A x."""
    diagonal: Floats


@dataclass(frozen=True)
class Friction:
    """Coulomb's law at a contact.

    Where a sliding coefficient is given, the law is no longer monotone. A contact at rest (w = 0 in all tangent rows)
    may use up to μ λ_normal; one that slides has the sliding coefficient. Between the two there may be two answers:
    which one it is depends on whether the contact was sliding before.
    """

    normal: int
    tangents: tuple[int, ...]
    """One or two rows."""
    mu: float
    """The coefficient, the static one where there is a sliding one as well; inf: the contact never slips. Problems cap
    it at `NEVER_SLIPS`."""
    cone: bool = True
    """False: a pyramid, each tangent row by itself."""
    sliding: float | None = None
    """Coefficient while the contact slides, no more than μ; μ where missing."""
    sliding_now: bool = False
    """Whether the contact slides as it is. Then it has the sliding coefficient, even if it comes to rest."""

    @property
    def drops(self) -> bool:
        """Whether friction is less once the contact slides."""
        return self.sliding is not None and self.sliding < self.mu

    @property
    def most(self) -> float:
        """The largest coefficient that the contact may use."""
        return self.sliding if self.sliding_now and self.sliding is not None else self.mu

    def capped(self) -> Friction:
        """The contact with coefficients that solvers take: none is larger than `NEVER_SLIPS`."""
        sliding = None if self.sliding is None else min(self.sliding, NEVER_SLIPS)
        return replace(self, mu=min(self.mu, NEVER_SLIPS), sliding=sliding)

    def plain(self, sliding: bool = False) -> Friction:
        """The contact with one coefficient: the sliding one, or the one for rest.

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
    """A row with bounds, and rows with bounds that give way when it has reached its own (`secondary`)."""

    row: int
    helpers: tuple[int, ...]
    tolerances: tuple[float, ...]
    """How far each helper may be off its target, |w| at most; in units of w, 0 or more."""


@dataclass
class Problem:
    """One system to solve. Everything is checked when it is made.

    >>> problem = Problem([[2.0, 0.0], [0.0, 1.0]], [-1.0, 1.0], lo=[0.0, 0.0])
    >>> problem.size, problem.forms() == Form.EQUALITY | Form.BOUNDS
    (2, True)
    """

    A: Any
    """(m, m) array, or an `Operator`."""
    b: Any
    """(m,)"""
    lo: Any = None
    """(m,) least multipliers; −inf where missing."""
    hi: Any = None
    """(m,) greatest multipliers; inf where missing."""
    cfm: Any = None
    """(m,) softness, added to the diagonal; 0 where missing."""
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
        """(m,) of A, softness included."""
        own = self.A.diagonal if isinstance(self.A, Operator) else np.diag(self.A)
        return np.asarray(own + self.cfm, np.float64)

    def matrix(self) -> Floats:
        """(m, m) A, softness included; of an operator column by column."""
        if isinstance(self.A, Operator):
            columns = [self.A.apply(unit) for unit in np.eye(self.size)]
            return np.array(columns).T.reshape(self.size, self.size) + np.diag(np.asarray(self.cfm))
        return np.asarray(self.A + np.diag(np.asarray(self.cfm)))

    def residual(self, lam: Floats) -> Floats:
        """(m,) w = (A + diag(cfm)) λ + b."""
        product = self.A.apply(lam) if isinstance(self.A, Operator) else self.A @ lam
        return np.asarray(product + self.cfm * lam + self.b)

    def forms(self) -> Form:
        """What the problem asks of a solver."""
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
            raise ValueError(f"A has shape {self.A.shape}; b wants ({m}, {m})")
        if isinstance(self.A, Operator) and np.shape(self.A.diagonal) != (m,):
            raise ValueError(f"the operator's diagonal has shape {np.shape(self.A.diagonal)}; b wants ({m},)")
        for name in ("lo", "hi", "cfm"):
            if np.shape(getattr(self, name)) != (m,):
                raise ValueError(f"{name} has shape {np.shape(getattr(self, name))}; b wants ({m},)")
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
                raise ValueError(f"friction at row {f.normal}: one or two tangents and a μ ≥ 0 are wanted, found {f}")
            if f.sliding is not None and not 0.0 <= f.sliding <= f.mu:
                raise ValueError(
                    f"friction at row {f.normal}: the sliding coefficient is {f.sliding}; it must be 0 to μ = {f.mu}"
                )
        for ball in self.balls:
            if not ball.rows or not ball.radius >= 0.0:
                raise ValueError(f"a ball wants rows and a radius of 0 or more, found {ball}")


def _check_helps(helps: Sequence[Help], m: int, taken: set[int]) -> None:
    tolerances: dict[int, float] = {}
    helped: set[int] = set()
    for one in helps:
        if not one.helpers or len(one.tolerances) != len(one.helpers):
            raise ValueError(f"row {one.row} wants helpers, each with a tolerance; found {one}")
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
        raise ValueError(f"row {both[0]} helps and is helped; it can do but one")


class Status(Enum):
    """How a solver ended."""

    SOLVED = "solved"
    """The tolerance is met. Whether other multipliers would do as well, solvers do not all find out."""
    SINGULAR = "singular"
    """The tolerance is met, but other multipliers would do as well; of linear systems this is the shortest answer."""
    CONFLICTING = "conflicting"
    """No answer meets all rows; this one comes as near as the solver could."""
    STOPPED = "stopped"
    """Out of iterations; the best answer so far."""


@dataclass
class Result:
    """What a solver answers. `lam` is always finite."""

    lam: Floats
    """(m,) multipliers."""
    w: Floats
    """(m,) residuals at them."""
    status: Status
    iterations: int
    natural: float
    """Largest natural residual over all rows and blocks (see `residuals.natural_map`), in units of w."""
    complementarity: float
    """Largest product |λ w| of a row that should have one of them at nought, in units of λ w."""
    violation: float
    """How far the multipliers are outside their bounds, in units of λ."""
    history: list[float] = field(default_factory=list)
    """Natural residual after each iteration, where the solver keeps it."""

    @property
    def ok(self) -> bool:
        """Whether the tolerance is met."""
        return self.status in (Status.SOLVED, Status.SINGULAR)


@dataclass(frozen=True)
class Options:
    """What all solvers are told."""

    tolerance: float = 1e-9
    """Natural residual at which the problem counts as solved, of the largest |b| that a row can take away by
    itself (`residuals.size_of`; or of 1 where b is nought)."""
    iterations: int = 1000
    """Sweeps, pivots or steps at most."""
    warm: Floats | None = None
    """(m,) multipliers to start from, all finite."""
    history: bool = False
    """Keep the residual after each iteration."""
