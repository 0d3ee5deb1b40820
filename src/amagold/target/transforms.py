"""Constrained parameters: each kind as a map from free numbers u, which are sampled, to what the
user means, x.

The maps are the usual ones: those of Stan's reference manual, "Constraint Transforms", by which
NumPyro and TensorFlow Probability go too. They are one to one, so a density of x is one of u with
log |dx/du| added.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

FAR = 1e-4  # by which shares may miss one, because people round them


class Constraint(ABC):
    """A kind of parameter. Derive from it for one of your own; equal ones must be equal and hash
    alike, as those of a frozen dataclass are.
    """

    words: str  # what values must be, for a sentence

    @abstractmethod
    def __call__(self, position: Any) -> Any:
        """x of u, for NumPy's arrays by NumPy and for JAX's by JAX; leading axes are allowed."""

    @abstractmethod
    def inverse(self, reported: Any) -> np.ndarray:
        """u of x, by NumPy."""

    @abstractmethod
    def log_jacobian(self, position: Any) -> Any:
        """log |det dx/du| of all numbers of one u."""

    @abstractmethod
    def holds(self, reported: np.ndarray) -> np.ndarray:
        """Where x is inside; ends do not belong to it."""


@dataclass(frozen=True)
class Positive(Constraint):
    """x = exp(u)."""

    words = "greater than zero"

    def __call__(self, position: Any) -> Any:
        here, u = _module(position)
        return here.exp(u)

    def inverse(self, reported: Any) -> np.ndarray:
        return np.log(np.asarray(reported, np.float64))

    def log_jacobian(self, position: Any) -> Any:
        # dx/du = exp(u)
        return jnp.sum(position)

    def holds(self, reported: np.ndarray) -> np.ndarray:
        return reported > 0.0


@dataclass(frozen=True)
class Interval(Constraint):
    """x = a + (b - a) s(u), s the sigmoid."""

    lower: float
    upper: float

    @property
    def words(self) -> str:  # type: ignore[override]
        return f"between {self.lower:g} and {self.upper:g}, ends excluded"

    def __call__(self, position: Any) -> Any:
        here, u = _module(position)
        return self.lower + (self.upper - self.lower) * here.exp(-here.logaddexp(0.0, -u))

    def inverse(self, reported: Any) -> np.ndarray:
        x = np.asarray(reported, np.float64)
        return np.log(x - self.lower) - np.log(self.upper - x)

    def log_jacobian(self, position: Any) -> Any:
        # dx/du = (b - a) s(u) s(-u)
        u = jnp.asarray(position)
        width = np.log(self.upper - self.lower)
        return jnp.sum(width - jnp.logaddexp(0.0, u) - jnp.logaddexp(0.0, -u))

    def holds(self, reported: np.ndarray) -> np.ndarray:
        return (reported > self.lower) & (reported < self.upper)


@dataclass(frozen=True)
class Simplex(Constraint):
    """Shares that sum to one along the last axis, of K - 1 free numbers: of the stick that is left
    after the first k - 1 shares, the share z_k = s(u_k - log(K - k)) is broken off. Equal shares
    are at u = 0.
    """

    words = "shares greater than zero that sum to one along the last axis, at least two of them"

    def __call__(self, position: Any) -> Any:
        here, u = _module(position)
        left, broken, kept = _stick(here, u)
        # x_k = z_k prod_{j < k} (1 - z_j), and the last is what is left
        last = left[..., -1:] + kept[..., -1:]
        return here.exp(here.concatenate([left + broken, last], axis=-1))

    def inverse(self, reported: Any) -> np.ndarray:
        x = np.asarray(reported, np.float64)
        # what is left after k: from the small end, because one minus a sum would cancel
        after = np.cumsum(x[..., ::-1], axis=-1)[..., -2::-1]
        # logit z_k = log x_k - log(what is left after k)
        return np.log(x[..., :-1]) - np.log(after) + _balance(x.shape[-1] - 1)

    def log_jacobian(self, position: Any) -> Any:
        # triangular: dx_k/du_k = prod_{j < k} (1 - z_j) z_k (1 - z_k)
        return sum(jnp.sum(part) for part in _stick(jnp, jnp.asarray(position)))

    def holds(self, reported: np.ndarray) -> np.ndarray:
        if reported.ndim == 0 or reported.shape[-1] < 2:
            return np.array(False)
        sums = reported.sum(axis=-1, keepdims=True)
        return (reported > 0.0) & (np.abs(sums - 1.0) <= FAR)


@dataclass(frozen=True)
class Ordered(Constraint):
    """Increasing along the last axis: x_1 = u_1, x_k = x_{k-1} + exp(u_k)."""

    words = "increasing along the last axis"

    def __call__(self, position: Any) -> Any:
        here, u = _module(position)
        steps = here.concatenate([u[..., :1], here.exp(u[..., 1:])], axis=-1)
        return here.cumsum(steps, axis=-1)

    def inverse(self, reported: Any) -> np.ndarray:
        x = np.asarray(reported, np.float64)
        return np.concatenate([x[..., :1], np.log(np.diff(x, axis=-1))], axis=-1)

    def log_jacobian(self, position: Any) -> Any:
        # triangular: dx_1/du_1 = 1, dx_k/du_k = exp(u_k)
        return jnp.sum(jnp.asarray(position)[..., 1:])

    def holds(self, reported: np.ndarray) -> np.ndarray:
        return np.array(False) if reported.ndim == 0 else np.diff(reported, axis=-1) > 0.0


def positive() -> Constraint:
    """Numbers greater than zero, such as standard deviations."""
    return Positive()


def interval(lower: float, upper: float) -> Constraint:
    """Numbers between two ends."""
    if not (np.isfinite(lower) and np.isfinite(upper) and lower < upper):
        raise ValueError(
            f"lower must be less than upper, and both finite, got {lower} and {upper}; use "
            "positive() for numbers without an upper end"
        )
    return Interval(float(lower), float(upper))


def unit_interval() -> Constraint:
    """Numbers between 0 and 1, such as probabilities."""
    return Interval(0.0, 1.0)


def simplex() -> Constraint:
    """Positive numbers that sum to one along the last axis, such as the weights of a mixture."""
    return Simplex()


def ordered() -> Constraint:
    """Numbers that increase along the last axis, such as cut points."""
    return Ordered()


def _module(position: Any) -> tuple[Any, Any]:
    """NumPy in float64 for draws, whose ends must not round to zero or one; else JAX."""
    if isinstance(position, (np.ndarray, np.generic, float, int, Sequence)):
        return np, np.asarray(position, np.float64)
    return jnp, position


def _stick(here: Any, u: Any) -> tuple[Any, Any, Any]:
    """log of the stick that is left before each share, of z and of 1 - z."""
    shifted = u - _balance(u.shape[-1]).astype(u.dtype)
    broken, kept = -here.logaddexp(0.0, -shifted), -here.logaddexp(0.0, shifted)
    left = here.cumsum(kept, axis=-1)[..., :-1]
    return here.concatenate([here.zeros_like(u[..., :1]), left], axis=-1), broken, kept


def _balance(count: int) -> np.ndarray:
    return np.log(np.arange(count, 0, -1))
