"""Horae, a distributed job scheduler: cron at scale, a durable job queue and a workflow engine in one system.

This package's own names are the public ones; what lies in its subpackages is for Horae itself.
"""

from horae.version import __version__

__all__ = ["__version__"]
