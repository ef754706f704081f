"""Flags of trees, stored at their first links, for the trees of a row's bodies and degrees of freedom."""

from __future__ import annotations

from poise.constraints.response.delassus_kernels import link_of
from poise.kernel.jit import kernel
from poise.kernel.memory import gather_where, load, scatter_where
from poise.kernel.scalars import select, spread, zero


@kernel
def root_of(model, link):
    """First links of the trees of links, −1 without one."""
    there = link >= 0
    return select(there, spread(gather_where(model.link_root, link, there), link), link)


@kernel
def root_of_body(model, body):
    """First links of the trees of bodies, −1 for bodies that do not move."""
    return root_of(model, link_of(model, body))


@kernel
def root_of_dof(model, dof):
    """First links of the trees of degrees of freedom, −1 without one."""
    there = dof >= 0
    return select(there, spread(gather_where(model.dof_root, dof, there), dof), dof)


@kernel
def flag_of(flags, root):
    """Flags at first links; 0 without one."""
    return gather_where(flags, root, root >= 0)


@kernel
def set_flag(flags, root, mark, there):
    """Set flags at first links, in the worlds of a mask."""
    scatter_where(flags, root, zero(load(flags, 0)) + mark, there & (root >= 0))


@kernel
def is_in(model, flags, d):
    """Worlds in which the tree of a degree of freedom has a flag at its first link."""
    return load(flags, load(model.dof_root, d)) > 0.5
