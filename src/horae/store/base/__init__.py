"""Parts that all scripts share: shelves, stored definitions, sealed columns.

A script is written once for both databases. It selects, moves and guards; decisions are pure functions of `model/`.
"""
