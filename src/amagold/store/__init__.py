"""Draws on disk: a Zarr store in ArviZ's layout, checkpoints, and a lock."""

from amagold.store._lock import StoreInUseError
from amagold.store._zarr_store import StoreFailedError

__all__ = ["StoreFailedError", "StoreInUseError"]
