"""Expressions in plain English. A description reflects the meaning of an expression, not its spelling.

A sentence consists of the times of the day (`clock`) and the days, months and years (`calendar`);
`model.triggers.decisions.values` adds the time zone.
"""
