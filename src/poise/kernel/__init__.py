"""The kernel language: physics written once in Python, run over any scalar.

A *scalar* is a float64, or a SIMD lane vector of float64 or float32: the same source steps one world in double
precision, or 8 or 16 worlds (or test forces) per instruction. Two kinds of function make a kernel:

    @formula   values in, values out; no loops over memory, no branches on state. Plain Python: it runs on floats and
               NumPy arrays as it stands, and is traced into machine code wherever a kernel calls it.
    @kernel    loops, memory (`load`, `store`) and branches on topology; compiled by Numba.

Values are scalars, masks, and the small types of `vec`, `quat` and `spatial`. Memory is a `View`: a table of typed
buffers that reaches compiled code as one handle. `entry` turns a kernel into something that Python can call.

Only this package imports Numba, and only when the first kernel is defined.
"""
