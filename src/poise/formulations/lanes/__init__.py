"""Batched worlds: many worlds in SIMD lanes."""
