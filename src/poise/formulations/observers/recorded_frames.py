"""Frames of a recording, copied in compiled code after a step: state, contacts, solver statistics, forces, energy."""

from __future__ import annotations

from poise.constraints.emit_rows import N_KINDS, stride_of
from poise.constraints.kinds.motor import FIRST_ID, force_by_law
from poise.constraints.row_store import CONTACT, SINGLE
from poise.dynamics.energy_momentum import add_up
from poise.formulations.observers.contact_events import contact_of
from poise.kernel.jit import kernel
from poise.kernel.memory import Count, Index, Real, View, load, load_lane, store
from poise.kernel.spatial import Force
from poise.kernel.vec import Vec3, zero3

SOLVER = ("rows", "sweeps", "newton_steps", "residual", "parts")
"""Statistics of a frame, in their order."""
N_SOLVER = len(SOLVER)
ENERGIES = ("kinetic", "gravity", "spring")
N_ENERGIES = len(ENERGIES)

FRAMES = View(
    "Frames",
    room=Count,
    contact_room=Count,  # of all frames together
    n_motors=Count,  # rows of motors
    # what frames hold besides time, coordinates and velocities
    has_energy=Count,
    has_solver=Count,
    has_torques=Count,
    has_contacts=Count,
    every=Index,  # (1) steps from frame to frame, 0 to record none
    due=Index,  # (1) steps until the next frame
    count=Index,  # (1) frames since they were last read
    answer=Index,  # (1) last status of the observer: see `observe_step`
    # of the last step
    done=Index,  # (1) 0 before the first step
    parts=Index,  # (1) its number of parts
    v_begin=Real,  # (nv) velocities at its beginning
    v_end=Real,  # (nv) at its end, by the equations of motion at its beginning
    tau_given=Real,  # (nv) applied generalized forces
    unit=Real,  # (1) divisor that turns multipliers into forces; 0: the length of the step; s
    told=Index,  # (1) 1 if the statistics are those in `told_solver`
    told_solver=Real,  # (N_SOLVER)
    plain=Real,  # (nv) scratch
    # by frame
    time=Real,
    q=Real,
    v=Real,
    solver=Real,
    tau=Real,
    passive=Real,
    motor=Real,
    energy=Real,
    momentum=Force,  # angular, about the centre of mass; linear
    com=Vec3,
    mass=Real,
    contact_start=Index,  # (room + 1)
    # by contact
    shape=Index,  # two each
    point=Vec3,
    normal=Vec3,
    depth=Real,
    force=Vec3,  # on the second shape
)


@kernel
def has_frame_room(rows, frames):
    """Whether there is room for one more frame, with all contacts that have rows."""
    n = load(frames.count, 0)
    if n >= frames.room:
        return False
    return frames.has_contacts == 0 or load(frames.contact_start, n) + load(rows.count, CONTACT) <= frames.contact_room


@kernel
def record_solver(stats, rows, frames, n):
    """Solver statistics of the step."""
    at = N_SOLVER * n
    if load(frames.told, 0) != 0:
        for k in range(N_SOLVER):
            store(frames.solver, at + k, load(frames.told_solver, k))
        return
    n_rows = 0
    for kind in range(N_KINDS):
        n_rows += load(rows.count, kind) * stride_of(kind)
    store(frames.solver, at, float(n_rows))
    store(frames.solver, at + 1, load(stats.swept, 0))
    store(frames.solver, at + 2, load(stats.stepped, 0))
    store(frames.solver, at + 3, load(stats.residual, 0))
    store(frames.solver, at + 4, float(load(frames.parts, 0)))


@kernel
def record_place(contacts, f, at, k, lane):
    """Geometry of contact k of a lane: its shapes, point, normal and depth."""
    store(f.shape, 2 * at, load_lane(contacts.a, k, lane))
    store(f.shape, 2 * at + 1, load_lane(contacts.b, k, lane))
    store(f.point, at, load_lane(contacts.point, k, lane))
    store(f.normal, at, load_lane(contacts.normal, k, lane))
    store(f.depth, at, -load_lane(contacts.gap, k, lane))


@kernel
def record_contacts(contacts, rows, frames, n, unit):
    """Contacts with rows, in the order of detection, with their forces."""
    at, found, first = (
        load(frames.contact_start, n),
        min(load(contacts.count, 0), contacts.room),
        load(rows.first, CONTACT),
    )
    for block in range(load(rows.count, CONTACT)):
        slot = first + 3 * block
        k = contact_of(contacts, rows, slot, found, 0)
        if k >= 0:
            record_place(contacts, frames, at, k, 0)
            force = zero3(unit)
            for i in range(slot, slot + 3):
                force = force + load(rows.Jb, i).f * load(rows.lam, i)
            store(frames.force, at, Vec3(force.x / unit, force.y / unit, force.z / unit))
            at += 1
    store(frames.contact_start, n + 1, at)


@kernel
def record_motors(rows, motors, frames, n, unit):
    """Forces of motors; for motors that are rows, from their multipliers."""
    at = n * frames.n_motors
    for j in range(frames.n_motors):
        store(frames.motor, at + j, load(motors.force, j))
    first = load(rows.first, SINGLE)
    for slot in range(first, first + load(rows.count, SINGLE)):
        j = FIRST_ID - load(rows.id, slot)
        if j >= 0 and j < frames.n_motors:
            store(frames.motor, at + j, load(rows.lam, slot) / unit)


@kernel
def acceleration_of(frames, d, dt):
    """Mean acceleration of a degree of freedom over the last step."""
    return (load(frames.v_end, d) - load(frames.v_begin, d)) / dt


@kernel
def record_torques(model, work, motors, frames, n, dt):
    """Applied generalized forces, and those of springs, dampers and drives at the end of the step."""
    for d in range(model.nv):
        store(frames.plain, d, 0.0)
    for j in range(frames.n_motors):  # motors that are not rows are part of these forces, and are recorded separately
        for term in range(load(motors.term_start, j), load(motors.term_start, j + 1)):
            d, force = load(motors.term_dof, term), load(motors.force, j)
            if load(motors.folded, j) > 0.0:  # in steps of several parts `force` is that of the last one
                force = force_by_law(motors, j, term, acceleration_of(frames, d, dt))
            store(frames.plain, d, load(frames.plain, d) + force * load(motors.term_gear, term))
    for k in range(motors.n_ranges):
        d = load(motors.range_dof, k)
        store(frames.plain, d, load(frames.plain, d) + load(motors.range_cut, k))
    for d in range(model.nv):
        given, a = load(frames.tau_given, d), acceleration_of(frames, d, dt)
        store(frames.tau, n * model.nv + d, given)
        passive = load(work.total, d) - given - load(work.diagonal, d) * a - load(frames.plain, d)
        store(frames.passive, n * model.nv + d, passive)


@kernel
def record_nothing(model, frames, n):
    """Zero forces and statistics, for a world before its first step."""
    for k in range(N_SOLVER * n, N_SOLVER * (n + 1)):
        store(frames.solver, k, 0.0)
    for d in range(model.nv):
        store(frames.tau, n * model.nv + d, load(frames.tau_given, d))
        store(frames.passive, n * model.nv + d, 0.0)
    for j in range(n * frames.n_motors, (n + 1) * frames.n_motors):
        store(frames.motor, j, 0.0)
    store(frames.contact_start, n + 1, load(frames.contact_start, n))


@kernel
def record_energy(model, state, own, totals, frames, n):
    """Energy, momentum and centre of mass of the state. Poses are computed in separate memory."""
    add_up(model, state, own, totals)
    store(frames.energy, N_ENERGIES * n, load(totals.kinetic, 0) + load(totals.drives, 0))
    store(frames.energy, N_ENERGIES * n + 1, load(totals.gravity, 0))
    store(frames.energy, N_ENERGIES * n + 2, load(totals.spring, 0))
    store(frames.momentum, n, load(totals.momentum, 0))
    store(frames.com, n, load(totals.com, 0))
    store(frames.mass, n, load(totals.mass, 0))


@kernel
def record_frame(model, state, work, stats, contacts, rows, motors, own, totals, frames, time, dt):
    """Record one frame, for which there is room; `dt` is the length of the last step, or of its last substep."""
    n = load(frames.count, 0)
    unit = load(frames.unit, 0) if load(frames.unit, 0) != 0.0 else dt
    store(frames.time, n, time)
    for i in range(model.nq):
        store(frames.q, n * model.nq + i, load(state.q, i))
    for d in range(model.nv):
        store(frames.v, n * model.nv + d, load(state.v, d))
    if frames.has_energy != 0:
        record_energy(model, state, own, totals, frames, n)
    if load(frames.done, 0) == 0:
        record_nothing(model, frames, n)
    else:
        if frames.has_solver != 0:
            record_solver(stats, rows, frames, n)
        if frames.has_torques != 0:
            record_torques(model, work, motors, frames, n, dt)
            record_motors(rows, motors, frames, n, unit)
        if frames.has_contacts != 0:
            record_contacts(contacts, rows, frames, n, unit)
    store(frames.count, 0, n + 1)
