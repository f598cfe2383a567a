"""The version, in a module that imports nothing: the package's own `__init__` brings the whole SDK along."""

__version__ = "0.1.0"
