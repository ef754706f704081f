"""Arguments of the kernels of a step, `(model, data, options, dt)`: `data` is all that a step reads and changes,
`options` are its options.
"""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np

from poise.collision.collision_layout import CONTACTS, SHAPES
from poise.constraints.islands import ISLANDS
from poise.constraints.kinds.contact import SURFACES
from poise.constraints.kinds.joint_limit import LIMITS
from poise.constraints.kinds.motor import MOTORS
from poise.constraints.response.delassus_kernels import FLOW, PLAIN
from poise.constraints.response.row_system import SYSTEM_IN_LANES
from poise.constraints.row_store import STORE
from poise.dynamics.dynamics_layout import INPUT, STATE, WORK
from poise.dynamics.integrate import STAGES
from poise.dynamics.maximal_bodies.body_state import APART
from poise.formulations.options import BUDGET
from poise.formulations.sleep.sleep_state import SLEEP
from poise.formulations.stages.smooth_motion import TREE_FLAGS
from poise.formulations.step_memory import is_free
from poise.formulations.step_status import BY_DISPLACEMENT
from poise.kernel.memory import Block, Count, Index, Int, Real, View, Width
from poise.kernel.spatial import Motion
from poise.model.model import Model
from poise.solve.newton_kernels import NEWTON
from poise.solve.pgs_kernels import ANSWER, ROWS

OPTIONS = View(
    "Options",
    sweeps=Count,
    every=Count,  # minimum number of sweeps before Newton's method
    steps=Count,  # maximum number of Newton steps between sweeps
    stabilize=Count,  # BY_SPEED or BY_DISPLACEMENT
    centred=Count,  # 1 if velocities of free flight are those of their time, 0 if they lag half a step behind
    separate=Count,  # 1 for maximal coordinates, WITH_LOOPS if rows hold the bodies as well, else 0
    erp=Real,  # (1) share of an error that is corrected in a step
    creep=Real,  # (1) maximum speed of the correction of errors; m/s or rad/s
    slop=Real,  # (1) error beyond which displacements correct it; m or rad
    quick=Real,  # (1) restitution threshold: approach speed above which contacts bounce; m/s
    near=Real,  # (1) gap up to which contacts always count; m
    far=Real,  # (1) gap beyond which no contact counts; m
    margin=Real,  # (1) gap at the end of a step below which a contact gets rows; m
    push=Real,  # (1) acceleration by impulses that the margin allows for; m/s²
    close=Real,  # (1) distance from a limit at the end of a step below which it gets a row; rad or m
    turn=Real,  # (1) acceleration of coordinates by impulses that `close` allows for; rad/s² or m/s²
    tolerance=Real,  # (1) natural residual over the largest |b|
    budget=Real,  # (1) maximum work of a step
    fastest=Real,  # (1) maximum speed of displacements, of contacts, slides and points of loop joints; m/s
    fastest_turn=Real,  # (1) and of rotations; rad/s
)
"""Options of a step. A step that Python splits has other values in its parts."""

STATS = View(
    "Stats",
    # written by `free_motion`
    top=Real,  # (1) speed that no point of a shape exceeds; m/s
    haste=Real,  # (1) motion bound: the fastest motion of a shape relative to its least extent; 1/s
    whirl=Real,  # (1) likewise, for the change of angular velocities by velocity products; 1/s
    ahead=Real,  # (1) gap up to which contacts are searched; m
    # of impulses
    residual=Real,  # (1) natural residual of the last step's impulses, relative to the largest |b|, of the worst island
    swept=Real,  # (1) sweeps of all solves of the step; each solve counts its slowest island
    stepped=Real,  # (1) Newton steps, likewise
    work=Real,  # (1) of all solves of the step: see `solve.pgs_kernels.ANSWER`
    newton_work=Real,  # (1) of it, the work of Newton's method
    status=Real,  # (1) worst status of the solves of impulses: SOLVED, STALLED or CAPPED
    shift_status=Real,  # (1) worst status of the solves of displacements
    wrong=Real,  # (1) how often impulses caused a violation that had no row
    look=Index,  # (1) how often the rows were rebuilt
    change=Real,  # (nv) change of velocities by the equations of motion at the beginning of the step
)
"""Statistics of a step."""

SCRATCH = View(
    "Scratch",
    held=Int,  # (2 n_limits + 3 n_balls) 1 if a limit has a row
    shift=Real,  # (nv) M⁻¹Jᵀμ, then the whole velocity that moves coordinates
    unmoved=Real,  # (nv) velocities that coordinates do not move along, since impacts come late in the step
    lagging=Real,  # (n_links) at the first link of a tree: 1 if velocities of free flight lag half a step behind
    falling=Real,  # (n_links) likewise: 1 if a tree is in free flight between instantaneous impacts
    any_unmoved=Index,  # (1) 1 if `unmoved` has nonzero entries
    most_sweeps=Real,  # (1) limit of sweeps for impulses, and
    most_work=Real,  # (1) limit of work
    last_sweeps=Real,  # (1) limits for displacements, likewise
    last_work=Real,  # (1)
    parted=Index,  # (1) 1 if the step has begun in an earlier part: sweeps and work accumulate
    carry=Real,  # (1) share of the multipliers of the step before that warm-starts a step
    looked_swept=Real,  # (1) sweeps, Newton steps and work before a world's own last rebuild of rows
    looked_stepped=Real,  # (1)
    looked_work=Real,  # (1)
    looked_newton_work=Real,  # (1)
    answered=Index,  # (1) 1 if `flow` has the effect of the impulses
    solved_again=Index,  # (1) 1 if the rows were solved again with the velocity products after the impulses
    known=Real,  # (nv) effect of impulses on velocities that was known when the rows were last built
    known_motion=Motion,  # (n_links) and on links
    start=Real,  # (nv) accelerations without rows at the beginning of the step
    all_products=Real,  # (nv) the part of them due to velocity products
    has_products=Index,  # (1) 1 if `all_products` is known
    products=Real,  # (nv) that part, 0 for trees that are neither split nor centred
    any_split=Index,  # (1) 1 if a tree is split or centred
    again=Real,  # (nv) additional accelerations when rows are solved again: see `smooth_motion`
    moved=Real,  # (nv) velocities with the effect of all but velocity products
    seen=Real,  # (nq) coordinates for which links were placed and factored at the end of the last step, or NaN
    from_q=Real,  # (nq) coordinates at the beginning of a separately integrated part of a tree, and
    from_v=Real,  # (nv) velocities there
    spin=Real,  # (1) greatest angular velocity of a link at the beginning of the step; rad/s
    fast=Real,  # (1) 1 if a Runge-Kutta method moves the smooth trees
    late=Real,  # (nv) velocity products that are added at the end of a step with impacts
    # (n_links) at the first link of a tree: how it is integrated (see `smooth_motion`); whether rows act on it, rows of
    # loop joints, other rows that push and pull, other rows that connect it to other trees; whether it is kinematic or
    # sleeps; how much a step changes its velocities; whether it has a free joint to the world, and more than one link
    smooth=Real,
    split=Real,
    centre=Real,
    resolved=Real,
    rows=Real,
    looped=Real,
    pulled=Real,
    tied=Real,
    led=Real,
    added=Real,
    floats=Real,
    chained=Real,
)
"""Results that stages of a step keep for later stages, and a step for the next one."""

CALLS = View(
    "Calls",
    see=Count,
    multiply=Count,
    share=Count,
    solve=Count,  # a bound entry: its address, and its table
    solve_table=Count,
)
"""Addresses of the entries that a step calls."""

DATA = View(
    "Data",
    lanes=Count,  # number of worlds
    state=STATE,
    inputs=INPUT,
    work=WORK,  # links at the beginning of a step
    end_work=WORK,  # links at its end
    stages=STAGES,
    bodies=APART,  # no links in reduced coordinates
    shapes=SHAPES,
    surfaces=SURFACES,
    contacts=CONTACTS,
    motors=MOTORS,
    limits=LIMITS,
    sleep=SLEEP,
    prebuilt=STORE,  # rows that are built once a step
    rows=STORE,
    old_rows=STORE,  # those of the step before
    islands=ISLANDS,
    system=SYSTEM_IN_LANES,
    scalar_view=PLAIN,  # the same memory, row by row
    flow=FLOW,
    problem=ROWS,
    answer=ANSWER,
    newton=NEWTON,
    stats=STATS,
    scratch=SCRATCH,
    calls=CALLS,
)
"""Memory of the kernels of a step, besides the model."""

_NUMBERS = {
    "erp": 0.2,
    "creep": 1e-3,
    "slop": 1e-4,
    "quick": 0.01,
    "near": 2e-3,
    "far": 0.05,
    "margin": 2e-4,
    "push": 40.0,
    "close": 2e-3,
    "turn": 800.0,
    "tolerance": 1e-3,
    "budget": BUDGET,
    "fastest": 3.0,
    "fastest_turn": 10.0,
}
_OF_DOFS = ("shift", "unmoved", "known", "start", "all_products", "products", "again", "moved", "from_v", "late")
_OF_LINKS = ("lagging", "falling", "known_motion", *TREE_FLAGS)


def options_block(
    width: Width,
    *,
    steps: int,
    separate: bool,
    centred: bool,
    sweeps: int = 500,
    every: int = 2,
    stabilize: int = BY_DISPLACEMENT,
    **numbers: float,
) -> Block:
    """Options with the given values, and defaults for the rest."""
    counts = {"sweeps": sweeps, "every": every, "stabilize": stabilize}
    counts |= {"steps": steps, "separate": int(separate), "centred": int(centred)}
    values = _NUMBERS | numbers
    block = OPTIONS.block(width, **counts, **dict.fromkeys(values, 1))
    for name, value in values.items():
        block.arrays[name][...] = value
    return block


def stats_block(model: Model, width: Width) -> Block:
    """Statistics, before any step."""
    return STATS.block(width, **(dict.fromkeys(STATS.fields, 1) | {"change": model.nv}))


def scratch_block(model: Model, width: Width, limits: Block) -> Block:
    """Memory for the results of stages, before any step."""
    sizes: dict[str, Any] = dict.fromkeys(SCRATCH.fields, 1)
    sizes |= dict.fromkeys(_OF_DOFS, model.nv) | dict.fromkeys(_OF_LINKS, model.n_links)
    sizes |= {"seen": max(model.nq, 1), "from_q": model.nq}
    sizes |= {"held": 2 * limits.counts()["n_limits"] + 3 * limits.counts()["n_balls"]}
    block = SCRATCH.block(width, **sizes)
    floats = np.array([is_free(model, link) for link in range(model.n_links)], float)
    chained = (np.bincount(model.link_root, minlength=model.n_links) > 1).astype(float)
    block.floats[...] = floats if width.lanes == 1 else floats[:, None]
    block.chained[...] = chained if width.lanes == 1 else chained[:, None]
    block.seen[...] = nan  # equals no coordinate
    block.carry[...] = 1.0
    return block


def no_bodies(width: Width) -> Block:
    """The block of separate bodies, in reduced coordinates."""
    return APART.block(width, **dict.fromkeys(APART.fields, 0))
