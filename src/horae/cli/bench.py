"""`horae bench`: the measurements of horae.bench as commands."""

from horae.bench.main import bench

__all__ = ["bench"]
