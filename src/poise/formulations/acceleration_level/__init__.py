"""The acceleration level: constraint forces, event location, impacts (KOK §7)."""
