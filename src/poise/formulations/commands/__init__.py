"""Commands of a step: forces, kinematic paths and motor targets that are set before it."""
