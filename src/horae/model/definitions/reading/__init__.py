"""The API form of a job's definition: read with precise errors, written back, and changed by patches.

`parse_definition(render_definition(spec))` returns the same spec.
"""
