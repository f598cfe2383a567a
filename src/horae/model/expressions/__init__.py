"""Expressions: a parser and an evaluator of CEL that count their own work.

`program.py` is the way in: it compiles a text and computes its value within a budget. Nothing here does I/O or reads a
clock, so that an expression costs the same number of steps wherever it is computed. Decision 17 says why this is ours.
"""
