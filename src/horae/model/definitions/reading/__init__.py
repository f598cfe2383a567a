"""A job's definition as the API spells it: read with every mistake named, written back, and changed by patches.

`parse_definition(render_definition(spec))` gives the same spec again.
"""
