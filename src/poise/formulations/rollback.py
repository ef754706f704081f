"""A copy of what a step changes besides coordinates and velocities, to restore it if the step fails."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from poise.kernel.jit import kernel
from poise.kernel.memory import F64, Block, Count, Index, Int, Real, Shared, View, load, store
from poise.kernel.spatial import Force
from poise.kernel.vec import Vec3

if TYPE_CHECKING:
    from poise.formulations.driver import Stepper

ROLLBACK = View(
    "Rollback",
    n_own=Count,  # numbers of separate bodies' states: see `Stepper.own`
    own=Real,
    kept_own=Real,
    n_motors=Count,  # rows of motors
    motor_force=Real,
    kept_motor_force=Real,
    motor_unsaturated=Real,
    kept_motor_unsaturated=Real,
    n_values=Count,  # coordinates of loop joints
    kept_active=Int,
    kept_broke=Int,
    kept_value=Real,
    kept_loop_force=Vec3,
    kept_loop_torque=Vec3,
    # sleeping
    n_settings=Count,
    n_rotations=Count,
    kept_settings=Real,
    kept_rotation=Real,
    kept_still=Real,
    kept_asleep=Index,
    kept_q=Real,
    kept_tau=Real,
    kept_force=Force,
    kept_gain_p=Real,
    kept_gain_d=Real,
    kept_goal_q=Real,
    kept_goal_v=Real,
)


@kernel
def copy_numbers(source, target, n):
    """Copy the first n elements of an array."""
    for i in range(n):
        store(target, i, load(source, i))


@kernel
def keep_start(model, loops, sleep, rollback):
    """Save the state at the beginning of a step."""
    copy_numbers(rollback.own, rollback.kept_own, rollback.n_own)
    copy_numbers(rollback.motor_force, rollback.kept_motor_force, rollback.n_motors)
    copy_numbers(rollback.motor_unsaturated, rollback.kept_motor_unsaturated, rollback.n_motors)
    if loops.n_loops != 0:
        copy_numbers(loops.active, rollback.kept_active, loops.n_loops)
        copy_numbers(loops.broke, rollback.kept_broke, loops.n_loops)
        copy_numbers(loops.value, rollback.kept_value, rollback.n_values)
        copy_numbers(loops.force, rollback.kept_loop_force, loops.n_loops)
        copy_numbers(loops.torque, rollback.kept_loop_torque, loops.n_loops)
    if sleep.sleeps != 0:
        copy_numbers(sleep.motor, rollback.kept_settings, rollback.n_settings)
        copy_numbers(sleep.rotation, rollback.kept_rotation, rollback.n_rotations)
        copy_numbers(sleep.still, rollback.kept_still, model.n_links)
        copy_numbers(sleep.asleep, rollback.kept_asleep, model.n_links + 1)
        copy_numbers(sleep.q, rollback.kept_q, model.nq)
        copy_numbers(sleep.tau, rollback.kept_tau, model.nv)
        copy_numbers(sleep.force, rollback.kept_force, model.n_bodies)
        copy_numbers(sleep.gain_p, rollback.kept_gain_p, model.nv)
        copy_numbers(sleep.gain_d, rollback.kept_gain_d, model.nv)
        copy_numbers(sleep.goal_q, rollback.kept_goal_q, model.nq)
        copy_numbers(sleep.goal_v, rollback.kept_goal_v, model.nv)


@kernel
def undo_step(model, loops, sleep, rollback):
    """Restore the saved state."""
    copy_numbers(rollback.kept_own, rollback.own, rollback.n_own)
    copy_numbers(rollback.kept_motor_force, rollback.motor_force, rollback.n_motors)
    copy_numbers(rollback.kept_motor_unsaturated, rollback.motor_unsaturated, rollback.n_motors)
    if loops.n_loops != 0:
        copy_numbers(rollback.kept_active, loops.active, loops.n_loops)
        copy_numbers(rollback.kept_broke, loops.broke, loops.n_loops)
        copy_numbers(rollback.kept_value, loops.value, rollback.n_values)
        copy_numbers(rollback.kept_loop_force, loops.force, loops.n_loops)
        copy_numbers(rollback.kept_loop_torque, loops.torque, loops.n_loops)
    if sleep.sleeps != 0:
        copy_numbers(rollback.kept_settings, sleep.motor, rollback.n_settings)
        copy_numbers(rollback.kept_rotation, sleep.rotation, rollback.n_rotations)
        copy_numbers(rollback.kept_still, sleep.still, model.n_links)
        copy_numbers(rollback.kept_asleep, sleep.asleep, model.n_links + 1)
        copy_numbers(rollback.kept_q, sleep.q, model.nq)
        copy_numbers(rollback.kept_tau, sleep.tau, model.nv)
        copy_numbers(rollback.kept_force, sleep.force, model.n_bodies)
        copy_numbers(rollback.kept_gain_p, sleep.gain_p, model.nv)
        copy_numbers(rollback.kept_gain_d, sleep.gain_d, model.nv)
        copy_numbers(rollback.kept_goal_q, sleep.goal_q, model.nq)
        copy_numbers(rollback.kept_goal_v, sleep.goal_v, model.nv)


def rollback_block(stepper: Stepper) -> Block:
    """Memory for the saved state of a stepper."""
    own, motors, loops, sleep = stepper.own, stepper.extras.motors, stepper.extras.loops, stepper.sleep.block
    n = {"own": len(own), "motors": len(motors.force), "values": len(loops.value)}
    n |= {"settings": len(sleep.motor), "rotations": len(sleep.rotation)}
    per_loop = dict.fromkeys(("active", "broke", "loop_force", "loop_torque"), len(loops.active))
    per_sleep = {name: len(sleep.arrays[name]) for name in ("still", "asleep", "q", "tau", "force", *_DRIVE)}
    per_motor = dict.fromkeys(("motor_force", "motor_unsaturated"), n["motors"])
    kept: dict[str, Any] = {"own": n["own"], **per_motor, "value": n["values"]}
    kept |= per_loop | per_sleep | {"settings": n["settings"], "rotation": n["rotations"]}
    return ROLLBACK.block(
        F64,
        own=Shared(own),
        motor_force=Shared(motors.force),
        motor_unsaturated=Shared(motors.unsaturated),
        **{f"n_{name}": number for name, number in n.items()},
        **{f"kept_{name}": size for name, size in kept.items()},
    )


_DRIVE = ("gain_p", "gain_d", "goal_q", "goal_v")
