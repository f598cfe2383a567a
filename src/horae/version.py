"""The version, in a module that imports nothing, because the package's `__init__` leads to the whole SDK."""

__version__ = "0.1.0"
