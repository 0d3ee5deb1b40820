"""Draws on disk: a Zarr store in ArviZ's layout, checkpoints, and a lock."""
