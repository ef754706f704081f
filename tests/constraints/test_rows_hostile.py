"""What the row store must refuse: each message says what was found and what would be right, and nothing has changed."""

from __future__ import annotations

from collections.abc import Callable
from math import inf, nan
from typing import Any

import numpy as np
import pytest

from constraints.test_rows import EYES, MODEL, UP
from poise.constraints.row_parts import point_parts
from poise.constraints.row_parts.part_bodies import body_at
from poise.constraints.row_store import HARD_CAP, LARGEST_ID
from poise.constraints.row_validation import Term
from poise.constraints.rows import Rows
from poise.kernel.memory import F32X16, F64, F64X8, Width
from poise.kernel.vec import Vec3
from poise.model.errors import SceneError
from poise.model.scene import Scene
from poise.solve.laws import Law, dead_zone, stiffening

LONG = Law(tuple((float(k), -float(k)) for k in range(9)))
BAD_ROWS: list[tuple[dict[str, Any], str]] = [
    ({}, "the row acts on the world alone: give it a body and its Jacobian, a dof, or terms"),
    ({"a": -1, "Ja": UP}, "the row acts on the world alone"),
    ({"terms": [Term(-1, UP)]}, "the row acts on the world alone"),
    ({"Jb": UP}, "Jb is given without its body: give b, or −1 for the world"),
    ({"Ja": UP}, "Ja is given without its body: give a"),
    ({"b": "arm"}, "body b is 'arm', and Jb is missing: give its six numbers"),
    ({"a": 0}, "body a is 0, and Ja is missing"),
    ({"b": "arm", "Jb": UP[:5]}, r"Jb is \(0.0, 0.0, 0.0, 0.0, 0.0\); it must be six finite numbers"),
    ({"b": "arm", "Jb": [UP]}, "it must be six finite numbers"),
    ({"b": "arm", "Jb": 1.0}, "Jb is 1.0; it must be six finite numbers"),
    ({"b": "arm", "Jb": "sixsix"}, "Jb is 'sixsix'; it must be six finite numbers"),
    ({"b": "arm", "Jb": (*UP[:5], nan)}, "it must be six finite numbers"),
    ({"a": "arm", "Ja": (*UP[:5], inf)}, "Ja is .* it must be six finite numbers"),
    ({"b": 2, "Jb": UP}, "body 2: the model has bodies 0 to 1"),
    ({"b": -2, "Jb": UP}, "body -2: the model has bodies 0 to 1"),
    ({"b": 0.5, "Jb": UP}, "body must be a name or a number, not 0.5"),
    ({"b": "amr", "Jb": UP}, 'there is no body "amr", did you mean "hero/arm"?'),
    ({"dof": 7}, "dof 7: the model has degrees of freedom 0 to 6"),
    ({"dof": -1}, "dof -1: the model has degrees of freedom 0 to 6"),
    ({"dof": "elbw"}, 'there is no degree of freedom "elbw", did you mean "hero/elbow"?'),
    ({"dof": 0, "coefficient": nan}, "coefficient is nan; it must be finite"),
    ({"dof": 0, "coefficient": "2"}, "coefficient is '2'; it must be one number"),
    ({"b": 0, "Jb": UP, "coefficient": 2.0}, "coefficient is 2.0 without a dof; give both or neither"),
    ({"dof": 0, "tagret": 1.0}, 'a row has no tagret, did you mean "target"?'),
    ({"dof": 0, "mu": 1.0}, "a row has no mu"),
    ({"dof": 0, "phi": nan}, "phi is nan; it must be finite"),
    ({"dof": 0, "gamma": -inf}, "gamma is -inf; it must be finite"),
    ({"dof": 0, "phi": "0.1"}, "phi is '0.1'; it must be one number"),
    ({"dof": 0, "phi": None}, "phi is None; it must be one number"),
    ({"dof": 0, "phi": [0.1]}, r"phi is \[0.1\]; it must be one number"),
    ({"dof": 0, "phi": np.array([0.1])}, "phi is .* it must be one number"),
    ({"dof": 0, "phi": 1j}, "phi is 1j; it must be one number"),
    ({"dof": 0, "lo": nan}, "lo is nan and hi inf; neither may be NaN"),
    ({"dof": 0, "lo": 2.0, "hi": 1.0}, "lo is 2.0 and hi 1.0; neither may be NaN, and lo must not be above hi"),
    ({"dof": 0, "lo": inf}, "lo is inf and hi inf"),
    ({"dof": 0, "hi": -inf}, "lo is -inf and hi -inf"),
    ({"dof": 0, "cfm": -1.0}, "cfm -1.0; erp is from 0 to 1, cfm 0 or more"),
    ({"dof": 0, "erp": 1.5}, "erp is 1.5 and cfm 0.0; erp is from 0 to 1"),
    ({"dof": 0, "law": dead_zone(-1, 1), "lo": 0.0}, "a row has a law or bounds, not both"),
    ({"dof": 0, "law": dead_zone(-1, 1), "hi": inf}, "a row has a law or bounds, not both"),
    ({"dof": 0, "law": "dead"}, "law is 'dead'; it must be a Law"),
    ({"dof": 0, "law": LONG}, "a law of 9 vertices; rows have room for 8"),
    ({"dof": 0, "world": 1}, "world is 1; it must be 0"),
    ({"dof": 0, "world": -1}, "world is -1; it must be 0"),
    ({"dof": 0, "world": 0.0}, "world is 0.0; it must be 0"),
    ({"dof": 0, "id": -1}, f"id is -1; it must be a whole number from 0 to {LARGEST_ID}"),
    ({"dof": 0, "id": LARGEST_ID + 1}, "it must be a whole number from 0"),
    ({"dof": 0, "id": 1.0}, "id is 1.0; it must be a whole number"),
    ({"dof": 0, "id": "1"}, "id is '1'; it must be a whole number"),
    ({"dof": 0, "id": True}, "id is True; it must be a whole number"),
    ({"dof": 0, "id": 99}, "world 0 has a row of id 99 already"),
    ({"terms": [3]}, "a term is 3; it must be a Term"),
    ({"terms": [Term()]}, "a term is on a body or on a coordinate"),
    ({"terms": [Term(0, UP, dof=0)]}, "a term is on a body or on a coordinate"),
    ({"terms": [Term(0, UP[:3])]}, "J is .* it must be six finite numbers"),
    ({"terms": [Term(5, UP)]}, "body 5: the model has bodies 0 to 1"),
    ({"terms": [Term(dof=0, coefficient=inf)]}, "coefficient is inf; it must be finite"),
]


def full_store(width: Width = F64) -> Rows:
    """A store that has every kind, so that whatever went wrong would show."""
    rows = Rows(MODEL, width)
    rows.add(id=99, dof=0, terms=[Term(0, UP)])
    rows.add(id=98, dof=1, law=dead_zone(-1, 1))
    rows.add_contact(id=97, Ja=EYES, b=0, Jb=EYES, mu=1.0)
    return rows


def refused(rows: Rows, call: Callable[..., Any], message: str, **given_: Any) -> None:
    """The call fails with a message, and nothing has changed."""
    before = {name: array.copy() for name, array in rows.now.arrays.items()}
    with pytest.raises((ValueError, TypeError, SceneError), match=message):
        call(**given_)
    for name, array in before.items():
        np.testing.assert_array_equal(rows.now.arrays[name], array, err_msg=name)


@pytest.mark.parametrize(("given_", "message"), BAD_ROWS, ids=lambda x: str(x)[:40])
def test_bad_rows_are_refused_and_leave_no_trace(given_: dict[str, Any], message: str) -> None:
    rows = full_store()
    refused(rows, rows.add, message, **({"id": 1} | given_))


CONTACT: dict[str, Any] = {"id": 1, "Ja": EYES, "b": "arm", "Jb": EYES, "mu": 0.5}
BALL: dict[str, Any] = {"id": 1, "Ja": EYES, "b": "arm", "Jb": EYES, "radius": 0.5}
BAD_BLOCKS: list[tuple[dict[str, Any], str]] = [
    ({"b": -1}, "the row acts on the world alone"),
    ({"Jb": UP}, "Jb is 0.0; it must be six|Jb is .*; a block of three rows needs three times six numbers"),
    ({"Ja": EYES[:2]}, "a block of three rows needs three times six numbers"),
    ({"Jb": 3.0}, "Jb is 3.0; a block of three rows needs three times six numbers"),
    ({"Jb": EYES * nan}, "it must be six finite numbers"),
    ({"b": "amr"}, 'did you mean "hero/arm"?'),
    ({"lo": 0.0}, "no other bounds"),
    ({"hi": 0.0}, "no other bounds"),
    ({"id": 97}, "world 0 has a row of id 97 already"),
    ({"phy": (1, 1, 1)}, 'a row has no phy, did you mean "phi"?'),
    ({"phi": (1.0, 2.0)}, r"phi has shape \(2,\); it must be .*three"),
    ({"phi": (1.0, nan, 2.0)}, "phi is nan; it must be finite"),
    ({"world": 3}, "world is 3; it must be 0"),
]


@pytest.mark.parametrize(("given_", "message"), BAD_BLOCKS, ids=lambda x: str(x)[:40])
@pytest.mark.parametrize("kind", ["contact", "ball"])
def test_bad_blocks_are_refused_and_leave_no_trace(kind: str, given_: dict[str, Any], message: str) -> None:
    rows = full_store()
    call, usual = (rows.add_contact, CONTACT) if kind == "contact" else (rows.add_ball, BALL)
    refused(rows, call, message, **(usual | given_))


@pytest.mark.parametrize("mu", [-0.1, nan, "0.5", None])
def test_bad_coefficients_of_friction(mu: Any) -> None:
    rows = full_store()
    refused(rows, rows.add_contact, f"mu is {mu!r}; ", **(CONTACT | {"mu": mu}))


@pytest.mark.parametrize("radius", [-0.1, nan, "1", None])
def test_bad_radii(radius: Any) -> None:
    rows = full_store()
    refused(rows, rows.add_ball, "radius is", **(BALL | {"radius": radius}))


def test_a_ball_wants_three_of_each_and_a_contact_takes_one() -> None:
    rows = full_store()
    refused(rows, rows.add_ball, r"phi has shape \(\); it must be three numbers, one a row", **BALL, phi=1.0)
    rows.add_contact(**CONTACT, phi=1.0)
    assert rows.ids() == [99, 98, 97, 1]


def test_bad_parts_are_refused() -> None:
    rows, q = full_store(), MODEL.q_rest
    torso, arm = (body_at(MODEL, q, None, body) for body in ("torso", "arm"))
    none = Vec3(0.0, 0.0, 0.0)
    three, rope = point_parts.point(torso, arm, none, none), point_parts.distance(torso, arm, none, none)
    refused(rows, rows.add_part, r"part is a tuple; it must be one Part \(add several", part=three, bodies=(0, 1), id=1)
    refused(rows, rows.add_part, "a part on 2 needs 2 of them", part=rope, bodies=(0, 1, 1), id=1)
    refused(rows, rows.add_part, "bodies are 'ab'; a part on 2 needs 2", part=rope, bodies="ab", id=1)
    belt = point_parts.gear(rope, rope, 1.0, 0.0)
    refused(rows, rows.add_part, "a part on 4 needs 4 of them", part=belt, bodies=(0, 1), id=1)


def test_numbers_beyond_float32_are_refused_there() -> None:
    rows = full_store(F32X16)
    refused(rows, rows.add, r"phi is 1e\+300; float32 ends at 3.40282e\+38", id=1, dof=0, phi=1e300)
    refused(rows, rows.add, "Jb is", id=1, b=0, Jb=(0, 0, 0, 0, 0, 1e39))
    refused(rows, rows.add, "term_J is", id=1, terms=[Term(0, (0, 0, 0, 0, 0, 1e39))])
    refused(rows, rows.add, "law_lam is", id=1, dof=0, law=stiffening([1e39], [0.0, 0.0]))
    refused(rows, rows.add_ball, "bound is", **(BALL | {"radius": 1e39}))
    rows.add(id=1, dof=0, lo=-inf, hi=inf)


@pytest.mark.parametrize(
    ("room", "message"),
    [
        ({"singles": 3}, "room for 'singles', did you mean \"single\"?"),
        ({"single": -1}, "room for -1 of single; it must be a whole number from 0"),
        ({"term": 2.5}, "room for 2.5 of term; it must be a whole number"),
        ({"ball": HARD_CAP + 1}, f"it must be a whole number from 0 to {HARD_CAP}"),
    ],
)
def test_bad_room_is_refused(room: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Rows(MODEL, room=room)


def test_a_scene_is_no_model() -> None:
    with pytest.raises(TypeError, match="model must be a compiled model, not Scene"):
        Rows(Scene())  # type: ignore[arg-type]


@pytest.mark.parametrize("call", [Rows.ids, Rows.counts, lambda rows, world: rows.multipliers(99, world)])
def test_bad_worlds_are_refused_when_reading(call: Any) -> None:
    for width, world, wants in ((F64, 1, "0"), (F64X8, 8, "0 to 7"), (F64X8, -1, "0 to 7"), (F64, "x", "0")):
        with pytest.raises(ValueError, match=f"world is {world!r}; it must be {wants}"):
            call(full_store(width), world)


def test_unknown_ids_are_named() -> None:
    with pytest.raises(KeyError, match="no row of world 0 has the id 5"):
        full_store().multipliers(5)
