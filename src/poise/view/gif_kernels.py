"""GIF compression: LZW with codes of 9 to 12 bits."""

from __future__ import annotations

from poise.kernel.jit import kernel
from poise.kernel.memory import Count, Index, View, load, store

CLEAR, END, MOST = 256, 257, 4096

STREAM = View(
    "Stream",
    n=Count,
    pixel=Index,  # (n) colours, 0 to 255
    byte=Index,  # output; 2 n + 16 are enough
    child=Index,  # (4096 · 256) code of a known string with one more pixel, 0 where there is none
    used=Index,  # (4096) indices of the set entries
)


@kernel
def forget(s, known):
    """Empty the table of strings."""
    for k in range(known):
        store(s.child, load(s.used, k), 0)


@kernel
def put(s, at, bits, held, code, size):
    """Add a code to the pending bits, and write whole bytes; returns the next byte's index and the pending bits."""
    bits |= code << held
    held += size
    while held >= 8:
        store(s.byte, at, bits & 255)
        bits >>= 8
        held -= 8
        at += 1
    return at, bits, held


@kernel
def compress(s):
    """Bytes of the pixels' codes; returns how many there are."""
    size, following, known = 9, END + 1, 0
    at, bits, held = put(s, 0, 0, 0, CLEAR, size)
    string = load(s.pixel, 0) + 0
    for k in range(1, s.n):
        pixel = load(s.pixel, k)
        place = string * 256 + pixel
        longer = load(s.child, place)
        if longer != 0:
            string = longer + 0
            continue
        at, bits, held = put(s, at, bits, held, string, size)
        if following < MOST:
            store(s.child, place, following)
            store(s.used, known, place)
            known += 1
            if following == 1 << size:
                size += 1
            following += 1
        else:
            at, bits, held = put(s, at, bits, held, CLEAR, size)
            forget(s, known)
            size, following, known = 9, END + 1, 0
        string = pixel + 0
    at, bits, held = put(s, at, bits, held, string, size)
    at, bits, held = put(s, at, bits, held, END, size)
    if held > 0:
        store(s.byte, at, bits & 255)
        at += 1
    forget(s, known)
    return at
