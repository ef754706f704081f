"""Motor targets from tabulated motions in lanes of worlds: each world has a motion, a start and a place of its own."""

from __future__ import annotations

from poise.constraints.kinds.motor import MOTORS
from poise.dynamics.dynamics_layout import INPUT, STATE
from poise.formulations.commands.motion_tracking import MOTIONS, PHASE, SCHEDULE, TRACKING, find_step, follow
from poise.formulations.lanes.batch_kernels import GROUP, SEATS
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import F64, At, Index, Real, View, load, load_lane, store_lane

FOLLOWERS = View(
    "MotionFollowers",
    # (worlds), in float64 at every width
    motion=Index,  # which one a world follows
    start=Real,  # time of the world at which it begins; s
    # where its origin is put
    x=Real,
    y=Real,
    z=Real,
    w=Real,  # of a quaternion about the vertical
    w_z=Real,
)


@kernel
def find_lane(schedule, phase, followers, group, lane, world, dt):
    """Where the motion of a lane's world is in a step, and where it is put."""
    since = load(group.now, lane) - load(followers.start, world)
    find_step(schedule, phase, lane, load(followers.motion, world), since, dt)
    store_lane(phase.x, 0, lane, load(followers.x, world))
    store_lane(phase.y, 0, lane, load(followers.y, world))
    store_lane(phase.z, 0, lane, load(followers.z, world))
    store_lane(phase.w, 0, lane, load(followers.w, world))
    store_lane(phase.w_z, 0, lane, load(followers.w_z, world))


@kernel
def follow_in_lanes(state, inputs, motors, motions, schedule, phase, tracking, seats, group, followers, time, dt):
    """Set all that is to follow motions in a step of a group of worlds; their times are those of the group."""
    for lane in range(seats.lanes):
        find_lane(schedule, phase, followers, group, lane, load_lane(seats.world, 0, lane), dt)
    follow(state, inputs, motors, motions, phase, tracking, dt)
    return tracking.n_numbers  # bound entries return whole numbers


FOLLOW_IN_LANES = entry(
    follow_in_lanes,
    *(STATE, INPUT, MOTORS, MOTIONS, At(SCHEDULE, F64), PHASE, TRACKING, SEATS, At(GROUP, F64), At(FOLLOWERS, F64)),
    extra=("float64", "float64"),
)
