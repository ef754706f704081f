"""Contacts of boxes."""
