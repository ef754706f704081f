"""Tests of collision; a package, so that it is found before the benchmark of the same name."""
