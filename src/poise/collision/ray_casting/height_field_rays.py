"""Rays over height fields: traversal from cell to cell, each lane along its own path.

f(t) = z − h(x, y) is positive above the field. Along a ray f is linear between the borders and the diagonals of cells,
so the ray hits the surface where f changes sign from one such point to the next. The value of f at the end of a cell is
the value at the start of the next one: no ray slips through between cells.
"""

from __future__ import annotations

from typing import Any

from poise.collision.ray_casting.ray_spans import NEVER, STILL, box_span, unit
from poise.kernel.jit import kernel
from poise.kernel.memory import gather_where, load
from poise.kernel.scalars import any_lane, fabs, floor, maximum, minimum, select, spread, to_int, zero
from poise.kernel.trace import formula
from poise.kernel.values import Value
from poise.kernel.vec import Vec3


class Cell(Value):
    """Heights at the corners of a cell: at (0, 0), (1, 0), (0, 1) and (1, 1) of its x and y; m."""

    fields = (("h00", None), ("h10", None), ("h01", None), ("h11", None))
    __slots__ = ("h00", "h01", "h10", "h11")
    h00: Any
    h10: Any
    h01: Any
    h11: Any


@formula
def height_in(c: Any, u: Any, v: Any) -> Any:
    """Height of the surface at (u, v) of a cell, each 0 to 1: two triangles that meet along u = v."""
    right = c.h00 + u * (c.h10 - c.h00) + v * (c.h11 - c.h10)
    left = c.h00 + v * (c.h01 - c.h00) + u * (c.h11 - c.h01)
    return select(u >= v, right, left)


@formula
def column_of(a: Any, most: Any) -> Any:
    """Index of the cell of a grid coordinate, as a real number."""
    return minimum(maximum(floor(a), zero(a)), zero(a) + most)


@kernel
def load_cell(g, start, columns, i, j, mask):
    """Heights at cell (i, j), column and row, in the lanes of a mask."""
    at = to_int(j * columns + i) + start
    return Cell(
        gather_where(g.height, at, mask),
        gather_where(g.height, at + 1, mask),
        gather_where(g.height, at + columns, mask),
        gather_where(g.height, at + columns + 1, mask),
    )


@formula
def next_border(a: Any, rate: Any, cell: Any) -> Any:
    """The t at which a grid coordinate a + t · rate leaves its cell."""
    moves = fabs(rate) > STILL
    border = cell + select(rate > 0.0, zero(rate) + 1.0, zero(rate))
    return select(moves, (border - a) / select(moves, rate, zero(rate) + 1.0), zero(a) + NEVER)


@formula
def diagonal(a: Any, da: Any, b: Any, db: Any, start: Any, end: Any) -> Any:
    """The t at which a ray crosses the diagonal of its cell, clamped to start and end."""
    turn = da - db
    moves = fabs(turn) > STILL
    t = (b - a) / select(moves, turn, zero(turn) + 1.0)
    return minimum(maximum(select(moves, t, end), start), end)


@formula
def between(t0: Any, f0: Any, t1: Any, f1: Any) -> Any:
    """Root of a linear function that changes sign."""
    apart = f0 - f1
    return t0 + (t1 - t0) * (f0 / select(apart == 0.0, zero(apart) + 1.0, apart))


@formula
def changes(f0: Any, f1: Any) -> Any:
    """Whether a function changes sign; zero counts as above."""
    return (f0 < 0.0) ^ (f1 < 0.0)


@kernel
def meet_field(g, u, i, o, d, low, high):
    """First hit of rays with a height field between `low` and `high`, in its own frame; NEVER if there is none."""
    size = load(g.size, i)
    rows, columns = load(g.grid, 2 * i), load(g.grid, 2 * i + 1)
    start = load(g.height_start, i)
    lowest, highest = size.z, load(u.field_high, i)
    middle, half = 0.5 * (lowest + highest), 0.5000001 * (highest - lowest) + 1e-6 * (size.x + size.y)
    enter, leave = box_span(Vec3(o.x, o.y, o.z - middle), d, Vec3(size.x, size.y, half))
    t, stop = maximum(enter, low), minimum(leave, high)
    # grid coordinates: columns along x, rows along y
    per_x, per_y = 0.5 * (columns - 1) / size.x, 0.5 * (rows - 1) / size.y
    a, b, da, db = (o.x + size.x) * per_x, (o.y + size.y) * per_y, d.x * per_x, d.y * per_y
    i_cell, j_cell = column_of(a + da * t, columns - 2.0), column_of(b + db * t, rows - 2.0)
    walking = t <= stop
    cell = load_cell(g, start, columns, i_cell, j_cell, walking)
    f = o.z + d.z * t - height_in(cell, a + da * t - i_cell, b + db * t - j_cell)
    found = spread(NEVER, d.x)
    for _ in range(rows + columns + 4):
        if not any_lane(walking):
            break
        cell = load_cell(g, start, columns, i_cell, j_cell, walking)
        leave_x, leave_y = next_border(a, da, i_cell), next_border(b, db, j_cell)
        end = maximum(minimum(minimum(leave_x, leave_y), stop), t)
        half_way = diagonal(a - i_cell, da, b - j_cell, db, t, end)
        f_half = o.z + d.z * half_way - height_in(cell, a + da * half_way - i_cell, b + db * half_way - j_cell)
        f_end = o.z + d.z * end - height_in(cell, a + da * end - i_cell, b + db * end - j_cell)
        first, second = walking & changes(f, f_half), walking & changes(f_half, f_end)
        found = select(second, between(half_way, f_half, end, f_end), found)
        found = select(first, between(t, f, half_way, f_half), found)
        # on to the next cell
        along_x = leave_x <= leave_y
        i_cell = i_cell + select(along_x, select(da > 0.0, zero(a) + 1.0, zero(a) - 1.0), zero(a))
        j_cell = j_cell + select(along_x, zero(b), select(db > 0.0, zero(b) + 1.0, zero(b) - 1.0))
        t, f = end, f_end
        inside = (i_cell >= 0.0) & (i_cell <= columns - 2.0) & (j_cell >= 0.0) & (j_cell <= rows - 2.0)
        walking = walking & ~first & ~second & inside & (end < stop)
    return found


@kernel
def field_normal(g, i, p):
    """Upward normal of a height field at points of its surface, in its own frame."""
    size = load(g.size, i)
    rows, columns = load(g.grid, 2 * i), load(g.grid, 2 * i + 1)
    per_x, per_y = 0.5 * (columns - 1) / size.x, 0.5 * (rows - 1) / size.y
    a, b = (p.x + size.x) * per_x, (p.y + size.y) * per_y
    i_cell, j_cell = column_of(a, columns - 2.0), column_of(b, rows - 2.0)
    cell = load_cell(g, load(g.height_start, i), columns, i_cell, j_cell, a == a)
    right = a - i_cell >= b - j_cell
    slope_x = select(right, cell.h10 - cell.h00, cell.h11 - cell.h01) * per_x
    slope_y = select(right, cell.h11 - cell.h10, cell.h01 - cell.h00) * per_y
    return unit(Vec3(-slope_x, -slope_y, zero(slope_x) + 1.0))
