"""Expressions in plain English. A description reflects the meaning of an expression, not its spelling.

A sentence is composed from its clock and its calendar; `model.triggers.decisions.values` adds the zone.
"""
