"""What a step changes beside coordinates and velocities, kept at its beginning: a step that fails is undone by it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from poise.kernel.jit import kernel
from poise.kernel.memory import F64, Block, Count, Index, Int, Real, Shared, View, load, store
from poise.kernel.spatial import Force
from poise.kernel.vec import Vec3

if TYPE_CHECKING:
    from poise.formulations.stepper import Stepper

ROLLBACK = View(
    "Rollback",
    n_own=Count,  # states that links have of their own: see `Stepper.own`
    own=Real,
    kept_own=Real,
    n_motors=Count,  # rows of motors
    motor_force=Real,
    kept_motor_force=Real,
    n_values=Count,  # coordinates of loop joints
    kept_active=Int,
    kept_broke=Int,
    kept_value=Real,
    kept_loop_force=Vec3,
    kept_loop_torque=Vec3,
    # what sleeping depends on
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
def keep_start(m, j, z, k):
    """Keep what there is at the beginning of a step."""
    copy_numbers(k.own, k.kept_own, k.n_own)
    copy_numbers(k.motor_force, k.kept_motor_force, k.n_motors)
    if j.n_loops != 0:
        copy_numbers(j.active, k.kept_active, j.n_loops)
        copy_numbers(j.broke, k.kept_broke, j.n_loops)
        copy_numbers(j.value, k.kept_value, k.n_values)
        copy_numbers(j.force, k.kept_loop_force, j.n_loops)
        copy_numbers(j.torque, k.kept_loop_torque, j.n_loops)
    if z.sleeps != 0:
        copy_numbers(z.motor, k.kept_settings, k.n_settings)
        copy_numbers(z.rotation, k.kept_rotation, k.n_rotations)
        copy_numbers(z.still, k.kept_still, m.n_links)
        copy_numbers(z.asleep, k.kept_asleep, m.n_links + 1)
        copy_numbers(z.q, k.kept_q, m.nq)
        copy_numbers(z.tau, k.kept_tau, m.nv)
        copy_numbers(z.force, k.kept_force, m.n_bodies)
        copy_numbers(z.gain_p, k.kept_gain_p, m.nv)
        copy_numbers(z.gain_d, k.kept_gain_d, m.nv)
        copy_numbers(z.goal_q, k.kept_goal_q, m.nq)
        copy_numbers(z.goal_v, k.kept_goal_v, m.nv)


@kernel
def undo_step(m, j, z, k):
    """Put back what was kept."""
    copy_numbers(k.kept_own, k.own, k.n_own)
    copy_numbers(k.kept_motor_force, k.motor_force, k.n_motors)
    if j.n_loops != 0:
        copy_numbers(k.kept_active, j.active, j.n_loops)
        copy_numbers(k.kept_broke, j.broke, j.n_loops)
        copy_numbers(k.kept_value, j.value, k.n_values)
        copy_numbers(k.kept_loop_force, j.force, j.n_loops)
        copy_numbers(k.kept_loop_torque, j.torque, j.n_loops)
    if z.sleeps != 0:
        copy_numbers(k.kept_settings, z.motor, k.n_settings)
        copy_numbers(k.kept_rotation, z.rotation, k.n_rotations)
        copy_numbers(k.kept_still, z.still, m.n_links)
        copy_numbers(k.kept_asleep, z.asleep, m.n_links + 1)
        copy_numbers(k.kept_q, z.q, m.nq)
        copy_numbers(k.kept_tau, z.tau, m.nv)
        copy_numbers(k.kept_force, z.force, m.n_bodies)
        copy_numbers(k.kept_gain_p, z.gain_p, m.nv)
        copy_numbers(k.kept_gain_d, z.gain_d, m.nv)
        copy_numbers(k.kept_goal_q, z.goal_q, m.nq)
        copy_numbers(k.kept_goal_v, z.goal_v, m.nv)


def rollback_block(stepper: Stepper) -> Block:
    """Memory for what a stepper's steps change."""
    own, motors, loops, sleep = stepper.own, stepper.extras.motors, stepper.extras.loops, stepper.sleep.block
    n = {"own": len(own), "motors": len(motors.force), "values": len(loops.value)}
    n |= {"settings": len(sleep.motor), "rotations": len(sleep.rotation)}
    per_loop = dict.fromkeys(("active", "broke", "loop_force", "loop_torque"), len(loops.active))
    per_sleep = {name: len(sleep.arrays[name]) for name in ("still", "asleep", "q", "tau", "force", *_DRIVE)}
    kept: dict[str, Any] = {"own": n["own"], "motor_force": n["motors"], "value": n["values"]}
    kept |= per_loop | per_sleep | {"settings": n["settings"], "rotation": n["rotations"]}
    return ROLLBACK.block(
        F64,
        own=Shared(own),
        motor_force=Shared(motors.force),
        **{f"n_{name}": number for name, number in n.items()},
        **{f"kept_{name}": size for name, size in kept.items()},
    )


_DRIVE = ("gain_p", "gain_d", "goal_q", "goal_v")
