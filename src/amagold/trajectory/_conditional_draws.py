"""A step for coefficients with horseshoe priors: each part is drawn given the others, under a
Gaussian in place of the likelihood.

Quarter turns know one Gaussian, and leapfrog steps stumble over a density with a pole; but given
the local scales the prior is Gaussian, and so is the posterior, but for what the data differ by
from their expansion about one position. With pi^ the prior times that expansion, one step is

    tau | beta           a few Metropolis steps on log tau, the local scales integrated out
    tau, beta_S          the same with small coefficients that move along: b_j = beta_j / tau stays
    lambda | beta, tau   drawn exactly, and forgotten after the next line
    beta | lambda, tau   theta <- m + cos(h) (theta - m) + sin(h) L^-T z, with L L^T the precision
    tau, beta_S          as before
    tau | beta           as before

which reads the same backwards: each line leaves pi^ as it is and is reversible, lambda and beta
together too. So the step is reversible under pi^, and its work is log pi^(x) - log pi^(y): the test
is left with what the data differ by from their expansion, and the prior cancels.

The second line is for data that leave tau to the prior: coefficients hold tau where it is, and tau
them. S are those of |b_j| below a bound that is drawn; where another one would come below it the
move is rejected, because it would not be found on the way back.

Where the data are few, what they differ by is not left to the test alone: the turn from beta to
beta is cut into pieces, and the gradient kicks between them as along a rotation (`_rotation.py`);
the kicks' work is added. The second line is left out where that is much.

| symbol | name |
|---|---|
| theta | the position without log tau; beta of it are shrunk |
| h | step_size: pi / 2 draws beta afresh |
| c, G, P | center, slope and curvature there of all but the horseshoe |
"""

import math
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from amagold.core import trees
from amagold.core.array_types import Float
from amagold.core.cholesky import factor_and_inverse
from amagold.core.shapes import Form, Matrix, Number, Position, RandomKey, Scalar, Vector
from amagold.target._horseshoe import Horseshoe
from amagold.trajectory._phase import Gradient, Phase, Symmetry

LogTau = Float[jax.Array, " groups"]

TRIES = 3  # Metropolis steps on log tau
# between which the widths of moves along with coefficients are drawn, and the bounds on |b|; evenly
# in their logarithms
WIDTHS, BOUNDS = (0.05, 2.0), (1.0, 30.0)


@trees.record(static=("num_kicks", "moves_along"))
class ConditionalDraws:
    """Reversible under the horseshoe prior times a Gaussian."""

    step_size: Number
    horseshoe: Horseshoe
    center: Vector
    slope: Vector
    curvature: Matrix
    num_kicks: int = 0  # by the gradient, on the way from beta to beta
    moves_along: bool = True  # whether small coefficients move along with tau

    symmetry: ClassVar[Symmetry] = "reversible"
    refreshes_momentum: ClassVar[bool] = True
    draw_momentum: ClassVar[None] = None

    def draw(self, key: RandomKey, position: Form, shape: tuple[int, ...] = ()) -> Any:
        groups, shrunk = self.horseshoe.num_groups, self.horseshoe.places.shape[0]
        keys = jax.random.split(key, 8)
        tries = (*shape, 2, TRIES, groups)
        return {
            "coefficients": jax.random.normal(keys[0], (*shape, trees.size(position) - groups)),
            # above zero, so that its logarithm is finite
            "local": 1.0 - jax.random.uniform(keys[1], (*shape, shrunk)),
            "strides": jax.random.normal(keys[2], tries),
            "tests": 1.0 - jax.random.uniform(keys[3], tries),
            "moves": _evenly(keys[4], tries, *WIDTHS) * jax.random.normal(keys[5], tries),
            "bounds": _evenly(keys[6], tries, *BOUNDS),
            "move_tests": 1.0 - jax.random.uniform(keys[7], tries),
        }

    def check(self, position: Form) -> None:
        size = self.center.shape[0] + self.horseshoe.num_groups
        if trees.size(position) != size:
            raise ValueError(
                f"center must be like the position, of {trees.size(position)} numbers, got {size}"
            )

    def reverse(self, phase: Phase) -> Phase:
        return phase

    def step(self, phase: Phase, noise: Any, gradient: Gradient) -> tuple[Phase, Scalar]:
        before, log_tau = self.horseshoe.split(trees.flatten(phase.position))
        energy = self.energy(before, log_tau)
        first, second = (jax.tree.map(lambda leaf, i=i: leaf[i], _of_scales(noise)) for i in (0, 1))
        log_tau = self._scales(before, log_tau, first["strides"], first["tests"])
        after, log_tau = self._moved(before, log_tau, first, 0)
        after, kicked = self._turned(after, log_tau, noise, gradient, phase.position)
        after, log_tau = self._moved(after, log_tau, second, 1)
        log_tau = self._scales(after, log_tau, second["strides"], second["tests"])
        # log pi^(x) - log pi^(y)
        work = self.energy(after, log_tau) - energy + kicked
        end = trees.unflatten_like(jnp.concatenate([after, log_tau]), phase.position)
        return Phase(end), work

    def energy(self, at: Vector, log_tau: LogTau) -> Scalar:
        """-log pi^."""
        away = at - self.center
        known = jnp.dot(self.slope + 0.5 * (self.curvature @ away), away)
        return known - self.horseshoe.log_density(at, log_tau)

    def _scales(self, at: Vector, log_tau: LogTau, strides: Any, tests: Any) -> LogTau:
        """A few Metropolis steps on log tau of each group."""
        return self.horseshoe.walk(at, log_tau, strides, jnp.log(tests))

    def _moved(self, at: Vector, log_tau: LogTau, noise: Any, side: int) -> tuple[Vector, LogTau]:
        """Metropolis steps on log tau and the small coefficients of each group in turn; on the
        other side of the step in the opposite order. Not where the expansion leaves much out, which
        no gradient would make up for.
        """
        if not self.moves_along:
            return at, log_tau
        shrunk = self.horseshoe

        def one(carry: Any, step: Any) -> tuple[Any, None]:
            at, log_tau = carry
            group, by, bound, test = step
            beta, is_own = shrunk.coefficients(at), shrunk.groups == group
            is_small = is_own & (jnp.abs(beta) < bound * jnp.exp(log_tau[group]))
            moved = at.at[shrunk.places].multiply(jnp.where(is_small, jnp.exp(by), 1.0))
            proposed = log_tau.at[group].add(by)
            others = jnp.abs(beta) >= bound * jnp.exp(proposed[group])
            is_found_again = jnp.all(is_small | others | ~is_own)
            # log pi^ of both, with the Jacobian of what moves along; they are compared as products
            # because the squares may be large
            away, step_by = at - self.center, moved - at
            rise = jnp.dot(self.slope + self.curvature @ (away + 0.5 * step_by), step_by)
            gain = jnp.sum(shrunk.of_groups(shrunk.coefficients(moved), proposed))
            gain = gain - jnp.sum(shrunk.of_groups(beta, log_tau)) + by * jnp.sum(is_small)
            is_accepted = is_found_again & (jnp.log(test) < gain - rise)
            return (
                jnp.where(is_accepted, moved, at),
                jnp.where(is_accepted, proposed, log_tau),
            ), None

        # groups there and back, tries after tries
        order = jnp.broadcast_to(jnp.arange(shrunk.num_groups), noise["moves"].shape)
        turns = (jnp.arange(TRIES) + side)[:, None] % 2 == 1
        order = jnp.where(turns, order[:, ::-1], order)
        steps = (noise[name] for name in ("moves", "bounds", "move_tests"))
        flat = jax.tree.map(jnp.ravel, (order, *steps))
        (at, log_tau), _ = jax.lax.scan(one, (at, log_tau), flat)
        return at, log_tau

    def _turned(
        self, at: Vector, log_tau: LogTau, noise: Any, gradient: Gradient, like: Position
    ) -> tuple[Vector, Scalar]:
        """The coefficients turned by the step's angle about their Gaussian's mean, and the work of
        kicks on the way.
        """
        places = self.horseshoe.places
        own = self.horseshoe.precisions(at, log_tau, noise["local"])
        # in units where the precision's diagonal is one: local scales differ by many powers of ten
        diagonal = jnp.diagonal(self.curvature).at[places].add(own)
        unit = jax.lax.rsqrt(diagonal)
        scaled = unit[:, None] * self.curvature * unit
        scaled = scaled.at[jnp.diag_indices(len(unit))].set(1.0)
        factor, inverse = factor_and_inverse(scaled)
        # m - c = -(P + D)^-1 (G + D c)
        force = unit * self.slope.at[places].add(own * self.center[places])
        mean = self.center - unit * (inverse.T @ (inverse @ force))
        # q = L^T (theta - m) and p are N(0, I), and theta = m + L^-T q
        away, momentum = factor.T @ ((at - mean) / unit), noise["coefficients"]
        angle, work = self.step_size / max(1, self.num_kicks), jnp.zeros((), at.dtype)
        if not self.num_kicks:
            away, _ = _turn(away, momentum, angle)
        for _ in range(self.num_kicks):
            away, before = _turn(away, momentum, 0.5 * angle)
            here = mean + unit * (inverse.T @ away)
            rest = gradient(trees.unflatten_like(jnp.concatenate([here, log_tau]), like))
            # L^-1 grad V, V what the energy differs by from the Gaussian
            by = angle * (inverse @ (unit * self._rest(here, log_tau, rest)))
            # (|p|^2 - |p'|^2) / 2
            work = work + 0.5 * jnp.dot(by, 2.0 * before - by)
            away, momentum = _turn(away, before - by, 0.5 * angle)
        return mean + unit * (inverse.T @ away), work

    def _rest(self, at: Vector, log_tau: LogTau, gradient: Position) -> Vector:
        """The gradient of all but the horseshoe, less that of the expansion."""
        own = jax.grad(self.horseshoe.log_density)(at, log_tau)
        known = self.slope + self.curvature @ (at - self.center)
        return self.horseshoe.split(trees.flatten(gradient))[0] + own - known


def _turn(away: Vector, momentum: Vector, angle: Number) -> tuple[Vector, Vector]:
    """(q, p) -> (q cos + p sin, p cos - q sin), which keeps |q|^2 + |p|^2."""
    cosine, sine = jnp.cos(angle), jnp.sin(angle)
    return cosine * away + sine * momentum, cosine * momentum - sine * away


def _evenly(key: RandomKey, shape: tuple[int, ...], low: float, high: float) -> jax.Array:
    """Evenly in logarithms."""
    return low * jnp.exp(math.log(high / low) * jax.random.uniform(key, shape))


def _of_scales(noise: Any) -> Any:
    """What is drawn for both sides of a step."""
    return {name: noise[name] for name in ("strides", "tests", "moves", "bounds", "move_tests")}
