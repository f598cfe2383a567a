"""The moves: what a store can do, each a script written once for both databases.

SQL decides nothing here: it selects, moves and guards; decisions are pure functions of `model/`.
"""
