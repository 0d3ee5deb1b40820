"""Packages that only some uses need."""

import importlib
from types import ModuleType


class MissingPackageError(ImportError):
    """A package of an extra is not installed."""


def required(package: str, extra: str) -> ModuleType:
    """The package, or a sentence that says how to get it."""
    try:
        return importlib.import_module(package)
    except ImportError:
        raise MissingPackageError(
            f"this needs {package}, which is not installed; run: pip install 'amagold[{extra}]'"
        ) from None
