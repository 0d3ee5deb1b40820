"""Data that comes with the package, and data that it fetches."""

from amagold.datasets._australian import australian
from amagold.datasets._embedded_table import Table
from amagold.datasets._heart import heart
from amagold.datasets._mnist import Images, Mnist, mnist, notmnist

__all__ = ["Images", "Mnist", "Table", "australian", "heart", "mnist", "notmnist"]
