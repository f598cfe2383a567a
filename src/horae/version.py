"""The version of Horae.

This module imports nothing, so that the version can be read without the imports of the SDK.
"""

__version__ = "0.2.0"
