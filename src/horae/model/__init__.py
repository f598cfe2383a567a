"""Frozen values and pure decisions.

No I/O, no clock, no third-party I/O library. Everybody may import this layer; it imports only `env` and `errors`.
"""
