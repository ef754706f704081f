"""Ray caster of pictures: packets of 4 × 4 pixels in SIMD lanes, tile by tile.

A tile has a list of the shapes whose screen rectangles touch it. Each packet computes the first hits of its rays, then
the sun and sky light at these points. One sample per pixel suffices where only floor and sky are visible and no shadow
ends: a formula averages the squares of the floor, and the sky is smooth.
"""

from __future__ import annotations

from poise.collision.ray_casting.ray_kernels import (
    CAPSULE,
    ELLIPSOID,
    FIELD,
    PLANE,
    SPHERE,
    clip,
    convex_span,
    meet_shape,
    near_shape,
    surface_normal,
)
from poise.collision.ray_casting.ray_spans import NEVER, capsule_span
from poise.kernel.jit import kernel
from poise.kernel.memory import load, store
from poise.kernel.scalars import any_lane, fabs, maximum, minimum, select, spread, sqrt, to_int, zero
from poise.kernel.vec import Vec3, column0, column1, column2, dot, transpose_times, zero3
from poise.view.render_formulas import (
    ball_gap,
    capsule_gap,
    clamp01,
    covered,
    ellipsoid_gap,
    lit_beside,
    mix,
    packed,
    smooth,
    squares,
    times,
)
from poise.view.render_layout import SIDE, TILE, Measure, Tone

SUN, ZENITH, HORIZON = int(Tone.SUN), int(Tone.ZENITH), int(Tone.HORIZON)
AMBIENT, BOUNCE = int(Tone.AMBIENT), int(Tone.BOUNCE)
LIGHT, DARK = int(Tone.LIGHT), int(Tone.DARK)
SQUARE, FADE, SOFT = int(Measure.SQUARE), int(Measure.FADE), int(Measure.SOFT)
SHINE, HIDDEN, DIM = int(Measure.SHINE), int(Measure.HIDDEN), int(Measure.DIM)
OUTLOOK = 1e9
"""Far limit of rays; m."""
# fields and meshes are the last kinds: kind >= FIELD has a surface and no inside


# ---- shadows ---------------------------------------------------------------------------------------------------------


@kernel
def lit_past(g, u, x, i, p, sun, soft, stack):
    """Visible share of the sun at points p past shape i, 0 to 1."""
    kind = load(g.kind, i)
    if kind >= FIELD:
        start = zero(p.x) + 1e-3 * load(g.reach, i)
        t, _ = meet_shape(g, u, x, i, p, zero3(p.x) + sun, start, spread(OUTLOOK, p.x), stack)
        return select(t < NEVER, zero(p.x), zero(p.x) + 1.0)
    R = load(x.rotation, i)
    away = p - load(x.position, i)
    shift = -dot(away, sun)
    o, v = transpose_times(R, away + sun * shift), transpose_times(R, zero3(p.x) + sun)
    size = load(g.size, i)
    if kind == SPHERE:
        gap, t = ball_gap(o, v, size)
        return lit_beside(gap, t + shift, soft)
    if kind == CAPSULE:
        gap, t = capsule_gap(o, v, size)
        return lit_beside(gap, t + shift, soft)
    if kind == ELLIPSOID:
        gap, t = ellipsoid_gap(o, v, size)
        return lit_beside(gap, t + shift, soft)
    enter, leave = convex_span(g, u, i, kind, o, v)
    t = enter + shift
    # half of the ray's length within the shape; it grows from zero at the outline
    dark = (leave >= enter) & (t > 0.0)
    return select(dark, 1.0 - smooth((leave - enter) * 0.5 / (maximum(t, zero(t)) * soft + 1e-5)), zero(t) + 1.0)


@kernel
def sunlight(g, u, x, f, p, shape, ask, stack):
    """Visible share of the sun at points, 0 to 1, in the lanes of a mask; convex shapes do not shadow themselves."""
    sun, soft = load(f.sun, 0), load(f.measure, SOFT)
    lit = spread(1.0, p.x)
    for i in range(g.n_shapes):
        kind = load(g.kind, i)
        if kind == PLANE or load(f.rectangle, 4 * i) < 0:
            continue
        away = p - load(x.position, i)
        ahead = -dot(away, sun)
        apart = away + sun * ahead
        reach = load(g.reach, i)
        wide = maximum(ahead, zero(ahead)) * soft + reach
        near = ask & (dot(apart, apart) <= wide * wide) & (ahead + reach > 0.0) & (lit > 0.0)
        if kind < FIELD:
            near = near & (shape != i)
        if any_lane(near):
            lit = select(near, minimum(lit, lit_past(g, u, x, i, p, sun, soft, stack)), lit)
    return lit


@kernel
def skylight(g, x, f, p, normal, ask):
    """Visible share of the sky at points, 0 to 1, in the lanes of a mask: ambient occlusion by near shapes."""
    open_sky = spread(1.0, p.x)
    for i in range(g.n_shapes):
        kind = load(g.kind, i)
        if kind == PLANE or kind >= FIELD or load(f.rectangle, 4 * i) < 0:
            continue
        radius = load(f.round, i)
        away = p - load(x.position, i)
        reach = load(g.reach, i) + 3.0 * radius
        nearness = 1.0 - dot(away, away) / (reach * reach)
        near = ask & (nearness > 0.0)
        if any_lane(near):
            R = load(x.rotation, i)
            hidden = covered(transpose_times(R, away), transpose_times(R, normal), load(f.core, i), radius)
            # fades with the distance, so that its cutoff is invisible
            open_sky = select(near, open_sky * (1.0 - clamp01(hidden) * smooth(2.0 * nearness)), open_sky)
    return 1.0 - (1.0 - open_sky) * load(f.measure, DIM)


# ---- what is seen ----------------------------------------------------------------------------------------------------


@kernel
def listed(im, k):
    """A shape or mark of the tile's list, in the integer width of loop counters, which avoids a second compilation."""
    return load(im.listed, k) + 0


@kernel
def first_seen(g, u, x, im, n, d):
    """Distance, shape and triangle of the first hit of rays from the eye, among the listed shapes."""
    eye = zero3(d.x)
    low, best = zero(d.x), spread(OUTLOOK, d.x)
    shape, face = to_int(low) - 1, to_int(low)
    for k in range(n):
        i = listed(im, k)
        if any_lane(near_shape(g, x, i, eye, d, low, best)):
            t, triangle = meet_shape(g, u, x, i, eye, d, low, best, im.stack)
            met = t < best
            best = select(met, t, best)
            shape = select(met, zero(shape) + i, shape)
            face = select(met, triangle, face)
    return best, shape, face


@kernel
def floor_color(x, f, i, p, D, T):
    """Colour of plane i at points p = D T of the floor, averaged over the pixel's footprint."""
    R = load(x.rotation, i)
    normal = column2(R)
    per_square = 1.0 / load(f.measure, SQUARE)
    sinking = dot(normal, D)
    right, down = load(f.axis, 1), load(f.axis, 2)
    # ∂p/∂pixel: the ray's end moves in the plane
    over = (zero3(T) + right - D * (dot(normal, right) / sinking)) * (T * per_square)
    under = (zero3(T) + down - D * (dot(normal, down) / sinking)) * (T * per_square)
    ex, ey = column0(R), column1(R)
    at = (p - load(x.position, i)) * per_square
    wide_x = fabs(dot(ex, over)) + fabs(dot(ex, under)) + 1e-4
    wide_y = fabs(dot(ey, over)) + fabs(dot(ey, under)) + 1e-4
    share = squares(dot(ex, at), dot(ey, at), wide_x, wide_y)
    tint = load(f.color, i)
    return mix(zero3(T) + times(load(f.tone, DARK), tint), zero3(T) + times(load(f.tone, LIGHT), tint), share)


@kernel
def sky_color(f, d):
    """Colour of the sky in a direction; below the horizon, that of the horizon."""
    up = maximum(d.z, zero(d.z))
    return mix(zero3(d.z) + load(f.tone, HORIZON), zero3(d.z) + load(f.tone, ZENITH), up * (2.0 - up))


@kernel
def shaded(f, albedo, normal, d, lit, open_sky, matt):
    """Light from a surface to the eye."""
    sun = load(f.sun, 0)
    facing = maximum(dot(normal, sun), zero(d.x))
    up = 0.5 + 0.5 * normal.z
    sky = mix(zero3(d.x) + load(f.tone, BOUNCE), zero3(d.x) + load(f.tone, AMBIENT), up)
    light = zero3(d.x) + load(f.tone, SUN) * (facing * lit) + sky * open_sky
    # Blinn: the normal half way between sun and eye mirrors it; (n·h)^32
    half = zero3(d.x) + sun - d
    shine = maximum(dot(normal, half), zero(d.x)) / sqrt(dot(half, half) + 1e-9)
    for _ in range(5):
        shine = shine * shine
    glint = select(matt, zero(d.x), shine * lit * load(f.measure, SHINE))
    return times(albedo, light) + load(f.tone, SUN) * glint


@kernel
def surface_color(g, u, x, f, im, n, d, D, t, shape, face):
    """Colour of the first hits of rays, among the listed shapes."""
    p = d * t
    T = t * sqrt(dot(d, d) / dot(D, D))
    normal, albedo = zero3(d.x), zero3(d.x)
    matt = shape < 0
    for k in range(n):
        i = listed(im, k)
        mine = shape == i
        if any_lane(mine):
            normal = select(mine, surface_normal(g, u, x, i, p, face), normal)
            if load(g.kind, i) == PLANE:
                albedo = select(mine, floor_color(x, f, i, p, D, T), albedo)
                matt = matt | mine
            else:
                albedo = select(mine, zero3(d.x) + load(f.color, i), albedo)
    normal = select(dot(normal, d) > 0.0, -normal, normal)  # open surfaces are two-sided
    faded = select(matt, t * t / (t * t + load(f.measure, FADE) * load(f.measure, FADE)), zero(t))
    ask = (shape >= 0) & (faded < 0.99)
    lit, open_sky = spread(1.0, t), spread(1.0, t)
    if f.shadows != 0:
        above = p + normal * (t * 1e-4)
        turned = ask & (dot(normal, load(f.sun, 0)) > 0.0)
        if any_lane(turned):
            lit = sunlight(g, u, x, f, above, shape, turned, im.stack)
            if any_lane(lit < 1.0) and any_lane(lit > 0.0):
                store(im.edgy, 0, 1)
        if any_lane(ask):
            open_sky = skylight(g, x, f, p, normal, ask)
    color = shaded(f, albedo, normal, d, lit, open_sky, matt)
    return mix(color, zero3(t) + load(f.tone, HORIZON), faded)


# ---- marks: points, arrows and lines that are drawn over the picture -------------------------------------------------


@kernel
def cone_span(f, o, d, size):
    """Inside a cone along z, its tip up."""
    o, d = Vec3(o.x / size.x, o.y / size.x, o.z / size.y), Vec3(d.x / size.x, d.y / size.x, d.z / size.y)
    enter, leave = spread(-NEVER, o.x), spread(NEVER, o.x)
    for k in range(f.n_cone):
        normal = load(f.cone_normal, k)
        enter, leave = clip(enter, leave, dot(normal, o) - load(f.cone_offset, k), dot(normal, d))
    return enter, leave


@kernel
def with_marks(f, im, first, n, d, t, color):
    """A colour with the nearest of the listed marks blended over it; marks behind a surface are partly visible."""
    best, mark_color = spread(NEVER, d.x), zero3(d.x)
    for k in range(first, first + n):
        i = listed(im, k)
        R, centre, size = load(f.mark_rotation, i), load(f.mark_position, i), load(f.mark_size, i)
        shift = dot(d, centre)
        o, v = transpose_times(R, d * shift - centre), transpose_times(R, d)
        if load(f.mark_kind, i) == 0:
            enter, leave = capsule_span(o, v, size)
        else:
            enter, leave = cone_span(f, o, v, size)
        met = (enter <= leave) & (enter + shift > 0.0) & (enter + shift < best)
        best = select(met, enter + shift, best)
        mark_color = select(met, zero3(d.x) + load(f.mark_color, i), mark_color)
    share = select(best < t, zero(t) + 1.0, zero(t) + load(f.measure, HIDDEN))
    return mix(color, mark_color, select(best < NEVER, share, zero(t)))


# ---- pixels ----------------------------------------------------------------------------------------------------------


@kernel
def sample(g, u, x, f, im, n, n_marks, column, row):
    """Colour of the pixels of a packet, from their positions on the screen, in linear light."""
    D = zero3(column) + load(f.axis, 0) + load(f.axis, 1) * column + load(f.axis, 2) * row
    d = D * (1.0 / sqrt(dot(D, D)))
    t, shape, face = first_seen(g, u, x, im, n, d)
    color = sky_color(f, d)
    hit = shape >= 0
    if any_lane(hit):
        color = select(hit, surface_color(g, u, x, f, im, n, d, D, t, shape, face), color)
    if n_marks > 0:
        color = with_marks(f, im, n, n_marks, d, t, color)
    return color


@kernel
def list_shapes(g, f, im, tile_x, tile_y):
    """Numbers of shapes and marks whose rectangles touch a tile, and the number of planes among the shapes."""
    n, endless = 0, 0
    for i in range(g.n_shapes):
        if touches(f.rectangle, i, tile_x, tile_y):
            store(im.listed, n, i)
            n += 1
            if load(g.kind, i) == PLANE:
                endless += 1
    n_marks = 0
    for i in range(f.n_marks):
        if touches(f.mark_rectangle, i, tile_x, tile_y):
            store(im.listed, n + n_marks, i)
            n_marks += 1
    return n, n_marks, endless


@kernel
def touches(rectangle, i, tile_x, tile_y):
    """Whether a rectangle of packets touches a tile."""
    x0, x1 = load(rectangle, 4 * i), load(rectangle, 4 * i + 1)
    y0, y1 = load(rectangle, 4 * i + 2), load(rectangle, 4 * i + 3)
    left, top = tile_x * TILE, tile_y * TILE
    return x0 < left + TILE and x1 > left and y0 < top + TILE and y1 > top


@kernel
def paint_tile(g, u, x, f, im, lane_x, lane_y, tile_x, tile_y):
    """All pixels of a tile."""
    n, n_marks, endless = list_shapes(g, f, im, tile_x, tile_y)
    edges = n > endless or endless > 1 or n_marks > 0
    for y in range(tile_y * TILE, min(tile_y * TILE + TILE, f.packets_y)):
        for x_packet in range(tile_x * TILE, min(tile_x * TILE + TILE, f.packets_x)):
            column, row = lane_x + x_packet * SIDE, lane_y + y * SIDE
            store(im.edgy, 0, 1 if edges else 0)
            color = zero3(lane_x)
            taken = 0
            while taken < f.n_samples:
                shift = load(f.offset, taken)
                color = color + sample(g, u, x, f, im, n, n_marks, column + shift.x, row + shift.y)
                taken += 1
                if load(im.edgy, 0) == 0:
                    break
            store(im.pixel, y * f.packets_x + x_packet, packed(color * (1.0 / taken)))


@kernel
def paint(g, u, x, f, im):
    """All pixels."""
    lane_x, lane_y = load(im.across, 0), load(im.down, 0)
    for tile_y in range(-(-f.packets_y // TILE)):
        for tile_x in range(-(-f.packets_x // TILE)):
            paint_tile(g, u, x, f, im, lane_x, lane_y, tile_x, tile_y)
