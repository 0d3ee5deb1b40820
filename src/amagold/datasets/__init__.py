"""Data that comes with the package."""

from amagold.datasets.heart import Table, heart

__all__ = ["Table", "heart"]
