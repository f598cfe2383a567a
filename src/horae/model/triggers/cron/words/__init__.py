"""Expressions in plain English. What is said comes from what an expression means, not from how it was written.

A sentence is put together from its clock and its calendar; `model.triggers.decisions.values` adds the zone.
"""
