"""Leads: consent, identity, sameness and appointments, as rules without I/O, and their submission."""
