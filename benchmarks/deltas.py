"""How long the response to one test force takes, beside a whole forward dynamics.

Acceleration deltas (KOK §4.3) on MuJoCo's humanoid, in float64 inside a kernel: a test force on a body, a test torque
on a joint axis, and eight forces at once in lanes. Beside them the articulated-body algorithm, whole and with
everything that depends on the state alone precomputed.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence

import numpy as np
from _common import Case, Report, Row, Timings, arguments, effort, measure
from _kernels import ABM, CACHED, FORCE_DELTA, RESPOND, TORQUE_DELTA
from _trees import fill, filled, find_humanoid, handles, load_model, random_states

from poise import dynamics
from poise.kernel.memory import F64, F64X8
from poise.model.model import Model

QUESTION = "what one test force changes, beside a whole forward dynamics"
ALLOWED = 1e-9
LANES = F64X8


def depth(model: Model, link: int) -> int:
    """Degrees of freedom between a link and the world."""
    dof, count = int(model.link_dof_start[link + 1]) - 1, 0
    while dof >= 0:
        dof, count = int(model.dof_parent[dof]), count + 1
    return count


def deepest_body(model: Model) -> int:
    """The moving body that is farthest from the world, in degrees of freedom."""
    moving = np.flatnonzero(model.body_link >= 0)
    return max(moving.tolist(), key=lambda body: depth(model, int(model.body_link[body])))


def cases(model: Model) -> list[Case]:
    """All of them on one pose."""
    states = random_states(model, 1)
    whole, known = filled(model, F64, states), filled(model, F64, states)
    ABM[F64](*handles(known), 0.0, 1)
    one, many = known.response(F64), known.response(LANES)
    rng = np.random.default_rng(1)
    for block in (one, many):
        block.force[...] = rng.normal(size=block.force.shape)
        block.tau[...] = rng.normal(size=block.tau.shape)
    tree = (known.m.handle, known.w.handle)
    abm, cached, force, torque = ABM[F64], CACHED[F64], FORCE_DELTA[F64], TORQUE_DELTA[F64]
    respond, body = RESPOND[(F64, F64, LANES)], deepest_body(model)
    moving, dof = int(np.count_nonzero(model.body_link >= 0)), int(model.link_dof_start[model.body_link[body] + 1]) - 1

    def responses(n_forces: int) -> Callable[[int], None]:
        def run(n: int) -> None:
            many.set_count("n_forces", n_forces)
            respond(*tree, many.handle, n)

        return run

    return [
        Case("ABM", lambda n: abm(*handles(whole), 0.0, n), prepare=lambda: fill(whole, states)),
        Case("ABM cached", lambda n: cached(*handles(known), 0.0, n)),
        Case("force", lambda n: force(*tree, one.handle, 0, model.n_bodies, n), worlds=moving),
        Case("force leaf", lambda n: force(*tree, one.handle, body, body + 1, n)),
        Case("torque", lambda n: torque(*tree, one.handle, 0, model.nv, n), worlds=model.nv),
        Case("torque leaf", lambda n: torque(*tree, one.handle, dof, dof + 1, n)),
        Case("torque lanes", responses(0), worlds=LANES.lanes),
        Case("force lanes", responses(1), worlds=LANES.lanes),
    ]


def residuals(model: Model) -> tuple[dict[str, float], list[np.ndarray]]:
    """Deltas against the difference of two calls of the method, as a fraction of the greatest; and the deltas."""
    states = random_states(model, 1)
    q, v, tau = states.q[0], np.zeros(model.nv), np.zeros(model.nv)
    base = dynamics.forward_dynamics(model, q, v, tau)
    rng = np.random.default_rng(2)
    worst, found = dict.fromkeys(("force", "torque", "lanes"), 0.0), []

    def compare(kind: str, ours: np.ndarray, theirs: np.ndarray) -> None:
        found.append(ours)
        worst[kind] = max(worst[kind], float(np.abs(ours - (theirs - base)).max() / np.abs(theirs - base).max()))

    wrenches, torques = [], []
    for body in np.flatnonzero(model.body_link >= 0):
        forces = np.zeros((model.n_bodies, 6))
        forces[body] = rng.normal(scale=100.0, size=6)
        wrenches.append(forces)
        changed = dynamics.forward_dynamics(model, q, v, tau, forces=forces)
        compare("force", dynamics.force_delta(model, q, int(body), forces[body, 3:], forces[body, :3]), changed)
    for dof in range(model.nv):
        torques.append(100.0 * np.eye(model.nv)[dof])
        changed = dynamics.forward_dynamics(model, q, v, torques[-1])
        compare("torque", 100.0 * dynamics.torque_delta(model, q, dof), changed)
    for row, answer in zip(torques, dynamics.response(model, q, np.array(torques)), strict=True):
        compare("lanes", answer, dynamics.forward_dynamics(model, q, v, row))
    for forces, answer in zip(wrenches, dynamics.response(model, q, forces=np.array(wrenches)), strict=True):
        compare("lanes", answer, dynamics.forward_dynamics(model, q, v, tau, forces=forces))
    return worst, found


def rows(times: Timings, worst: dict[str, float]) -> list[Row]:
    """The table."""

    def row(name: str, what: str, beside: str, most: float | None, residual: str) -> Row:
        found = Row(what, times.of(name), beside=beside, ratio=times.ratio(name, beside), most=most)
        found.residual, found.allowed = worst[residual], ALLOWED
        return found

    table = [
        Row("ABM, one call", times.of("ABM")),
        Row("ABM cached", times.of("ABM cached"), beside="ABM", ratio=times.ratio("ABM cached", "ABM")),
    ]
    table[1].note = "balance and accelerate, the rest known"
    for kind in ("force", "torque"):
        for name, where in ((kind, "mean over the tree"), (f"{kind} leaf", "deepest leaf")):
            what = f"{kind} delta, {where}"
            table.append(row(name, what, "ABM", 1 / 3, kind))
            # KOK: "in the order of fifty to sixty percent", in general
            table.append(row(name, what, "ABM cached", 0.6 if name == kind else None, kind))
            table[-1].note = f"{100 / table[-1].ratio.median - 100:.0f} % faster"
        table.append(row(f"{kind} lanes", f"{kind}s in lanes {LANES}, per {kind}", "ABM", 0.1, "lanes"))
    return table


def main(argv: Sequence[str]) -> int:
    options = arguments(QUESTION, argv, model=True)
    path = find_humanoid(options.model)
    model, much = load_model(path), effort(options)
    worst, found = residuals(model)
    times = measure(cases(model), much)
    settings = {"model": path.name, "from": str(path.parent), "nv": model.nv, "links": model.n_links}
    settings["rounds"] = much.rounds
    return Report("deltas", QUESTION, settings, rows(times, worst), found).finish(options.json)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
