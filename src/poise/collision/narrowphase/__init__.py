"""Narrowphase: contacts of pairs of shapes."""
