"""Data that comes with the package, and data that it fetches."""

from amagold.datasets.australian import australian
from amagold.datasets.heart import heart
from amagold.datasets.mnist import Images, Mnist, mnist, notmnist
from amagold.datasets.table import Table

__all__ = ["Images", "Mnist", "Table", "australian", "heart", "mnist", "notmnist"]
