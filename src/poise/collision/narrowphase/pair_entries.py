"""Pair functions that are too large to be compiled into each caller: entries of their own, called by address.

Only those for the shapes of a model are compiled.
"""

from __future__ import annotations

from collections.abc import Iterable

from poise.collision.collision_layout import MANIFOLD, MOST_TOUCHES, SHAPES, WORK_ROOM
from poise.collision.narrowphase.box.box_pairs import touch_box
from poise.collision.narrowphase.convex.convex_pairs import touch_convex
from poise.collision.narrowphase.mesh.mesh_pairs import touch_surface
from poise.collision.narrowphase.pair_order import comes_later, flip
from poise.kernel.calls import call_entry
from poise.kernel.jit import entry, kernel
from poise.kernel.memory import Block, Width, load, store
from poise.model.shape_arrays import Solid

BOX, HULL = int(Solid.BOX), int(Solid.HULL)


@kernel
def find_boxes(g, t, a, b):
    """Contact points of a pair in which B is a box."""
    touch_box(t, load(g.kind, a), load(t.placed, 0), load(t.placed, 1), load(t.limit, 0))


@kernel
def find_convex(g, t, a, b):
    """Contact points of a pair in which B is a cylinder, an ellipsoid or a hull."""
    touch_convex(g, t, a, b, load(t.placed, 0), load(t.placed, 1), load(t.limit, 0))


@kernel
def find_surfaces(g, t, a, b):
    """Contact points of a pair in which B is a height field or a mesh."""
    touch_surface(g, t, a, b, load(t.placed, 0), load(t.placed, 1), load(t.limit, 0))


_PAIR = ("int64", "int64")
_find_boxes = entry(find_boxes, SHAPES, MANIFOLD, extra=_PAIR, lanes=False)
_find_convex = entry(find_convex, SHAPES, MANIFOLD, extra=_PAIR, lanes=False)
_find_surfaces = entry(find_surfaces, SHAPES, MANIFOLD, extra=_PAIR, lanes=False)
FINDERS = {
    "boxes": (_find_boxes, {Solid.BOX}),
    "convex": (_find_convex, {Solid.CYLINDER, Solid.ELLIPSOID, Solid.HULL}),
    "surfaces": (_find_surfaces, {Solid.FIELD, Solid.MESH}),
}
"""Pair functions by the kind of B."""


def manifold_block(width: Width, kinds: Iterable[int] = tuple(Solid)) -> Block:
    """Memory for the contact points of a pair of these kinds, in plain numbers of the width's precision."""
    plain, here = Width(width.elem), set(kinds)
    addresses = {name: finder.address(plain) if here & of else 0 for name, (finder, of) in FINDERS.items()}
    sizes = dict.fromkeys(MANIFOLD.fields, MOST_TOUCHES) | {"n": 1, "limit": 1, "placed": 2} | WORK_ROOM
    return MANIFOLD.block(plain, **sizes | addresses)


@kernel
def heavy_touch(g, t, a, b, A, B, limit):
    """Write the contact points of a pair in which B is neither sphere nor capsule to the manifold, in plain numbers."""
    store(t.n, 0, 0)
    kind = load(g.kind, b)
    swapped = load(g.kind, a) == kind and comes_later(A, B)
    if swapped:
        a, b, A, B = b, a, B, A
    store(t.placed, 0, A)
    store(t.placed, 1, B)
    store(t.limit, 0, limit)
    if kind == BOX:
        call_entry(t.boxes, g, t, a, b)
    elif kind <= HULL:
        call_entry(t.convex, g, t, a, b)
    else:
        call_entry(t.surfaces, g, t, a, b)
    if swapped:
        flip(t)
