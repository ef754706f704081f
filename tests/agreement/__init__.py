"""Formulations beside each other: every kind of joint with all that can act on it."""
