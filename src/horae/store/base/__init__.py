"""Parts that all scripts share: shelves, stored definitions, sealed columns.

A script is written once for both databases. It selects and moves rows under guards; decisions are pure functions of
`model/`.
"""
