"""Motor targets from tabulated motions in lanes of worlds: each world has its own motion, start time and placement."""

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
    motion=Index,  # the motion of a world
    start=Real,  # time of the world at which the motion begins; s
    # placement of the motion's origin
    x=Real,
    y=Real,
    z=Real,
    w=Real,  # of a quaternion about the vertical
    w_z=Real,
)


@kernel
def find_lane(schedule, phase, followers, group, lane, world, dt):
    """Phase and placement of the motion of a lane's world in a step."""
    since = load(group.now, lane) - load(followers.start, world)
    find_step(schedule, phase, lane, load(followers.motion, world), since, dt)
    store_lane(phase.x, 0, lane, load(followers.x, world))
    store_lane(phase.y, 0, lane, load(followers.y, world))
    store_lane(phase.z, 0, lane, load(followers.z, world))
    store_lane(phase.w, 0, lane, load(followers.w, world))
    store_lane(phase.w_z, 0, lane, load(followers.w_z, world))


@kernel
def follow_in_lanes(state, inputs, motors, motions, schedule, phase, tracking, seats, group, followers, time, dt):
    """Set the tracking targets of a step of a group of worlds, at the times of the group."""
    for lane in range(seats.lanes):
        find_lane(schedule, phase, followers, group, lane, load_lane(seats.world, 0, lane), dt)
    follow(state, inputs, motors, motions, phase, tracking, dt)
    return tracking.n_numbers  # bound entries return whole numbers


FOLLOW_IN_LANES = entry(
    follow_in_lanes,
    *(STATE, INPUT, MOTORS, MOTIONS, At(SCHEDULE, F64), PHASE, TRACKING, SEATS, At(GROUP, F64), At(FOLLOWERS, F64)),
    extra=("float64", "float64"),
)
