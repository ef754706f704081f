"""Signed distance and contact manifolds of convex shapes."""
