"""Expressions: a parser and an evaluator of CEL that count their own work.

`program.py` is the entry point: it compiles a text and evaluates it within a budget. No module of this package does I/O
or reads a clock, so an expression costs the same number of steps on every machine. Decision record 17 gives the reasons
for an implementation of our own.
"""
