"""Contacts of triangle meshes and height fields."""
