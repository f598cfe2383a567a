"""Expressions: a parser and an evaluator of CEL that count their own work.

`program.py` is the entry point: it compiles a text and evaluates it within a budget. Nothing here does I/O or reads a
clock, so an expression costs the same number of steps everywhere. Decision 17 gives the reasons for an implementation
of our own.
"""
