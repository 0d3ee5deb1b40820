"""The prior of effects of groups, and of their scales and correlations.

    u_g ~ N(0, Sigma),  Sigma = diag(s) C diag(s),
    s_j ~ half-normal or half-Student-t,  C ~ LKJ(eta), density |C|^(eta - 1)

Positions hold log s, and free numbers y of the partial correlations tanh(y), which are independent
under LKJ (Lewandowski, Kurowicka and Joe 2009): that of column j has the density
(1 - w^2)^(eta - 1 + (k - 2 - j) / 2).
"""

from typing import Any, NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.core.array_types import Float
from amagold.target._group_effects import FIXED, NOISE, TAU, correlation_name, scale_name
from amagold.target._shrunk_coefficients import ShrunkCoefficients

SHAPE = 2.0  # eta of LKJ: correlations of nearly one are unlikely
LARGEST_LOG = 30.0  # of a scale, that float32 still squares
GUIDE_WIDTH = 0.5  # of a log scale about its guess, for searches


class FactorForm(NamedTuple):
    """A factor's name and how many levels and effects of each it has."""

    name: str
    num_levels: int
    num_effects: int
    is_vector: bool  # whether a position holds a vector for each level, not a number

    @property
    def num_correlations(self) -> int:
        return self.num_effects * (self.num_effects - 1) // 2


@runtime_checkable
class PriorOfScales(Protocol):
    """Of the scales and correlations of one factor, by their logarithms and free numbers."""

    @property
    def form(self) -> FactorForm: ...

    @property
    def scales(self) -> jax.Array:
        """About how large they may be."""
        ...

    def __call__(self, log_scales: jax.Array, free: jax.Array) -> jax.Array:
        """log p(log s, y): Jacobians included."""
        ...

    def sentences(self, figure: float) -> tuple[str, ...]:
        """In words, with the first scale in the user's units."""
        ...


@trees.record(static=("form", "is_at_means"))
class ScalePrior:
    """Of the scales and correlations of one factor."""

    form: FactorForm
    scales: Float[jax.Array, " effects"]  # of the half-normal or half-Student-t
    freedom: Float[jax.Array, ""]  # its degrees of freedom; infinite for the half-normal
    is_at_means: bool = False  # of the intercept, whose columns beside it are centred there

    def __call__(self, log_scales: jax.Array, free: jax.Array) -> jax.Array:
        """log p(log s, y): Jacobians included."""
        return jnp.sum(self.of_scales(log_scales)) + self.of_correlations(free)

    def sentences(self, figure: float) -> tuple[str, ...]:
        """In words, with its scale in the user's units."""
        freedom = float(self.freedom)
        kind = "half-normal" if np.isinf(freedom) else f"half-Student-t({freedom:g})"
        many = self.form.num_effects > 1
        about = "standard deviation" if self.is_at_means else "root mean square"
        times = f", times the {about} of its column," if many else ""
        times += " at the means of the columns," if self.is_at_means else ""
        with_them = f", their correlations LKJ({SHAPE:g})" if many else ""
        return (
            f"The standard deviation of the effects {self.form.name!r}{times} has a {kind} "
            f"prior of scale {figure:.4g}{with_them}.",
        )

    def of_scales(self, log_scales: jax.Array) -> jax.Array:
        """Of each, up to a constant: half-t (s) + log s."""
        square = jnp.exp(2.0 * (log_scales - jnp.log(self.scales)))
        is_normal = jnp.isinf(self.freedom)
        freedom = jnp.where(is_normal, 1.0, self.freedom)
        of_t = -0.5 * (freedom + 1.0) * jnp.log1p(square / freedom)
        return jnp.where(is_normal, -0.5 * square, of_t) + log_scales

    def of_correlations(self, free: jax.Array) -> jax.Array:
        """sum (eta + (k - 2 - j) / 2) log(1 - tanh(y)^2), the Jacobian of tanh included."""
        if not self.form.num_correlations:
            return jnp.float32(0.0)
        k = self.form.num_effects
        columns = np.array([j for i in range(k) for j in range(i)])
        powers = jnp.asarray(SHAPE + 0.5 * (k - 2 - columns), jnp.float32)
        return jnp.sum(powers * _log_one_less_square(free))


def _log_one_less_square(free: jax.Array) -> jax.Array:
    """log(1 - tanh(y)^2), far out too."""
    return 2.0 * (jnp.log(2.0) - jnp.abs(free) - jnp.log1p(jnp.exp(-2.0 * jnp.abs(free))))


def correlation_factor(free: jax.Array, num_effects: int) -> list[list[jax.Array]]:
    """The Cholesky factor of C from the free numbers of its partial correlations, row by row: all
    entries may have leading axes, which come before the last one of `free`.
    """
    one = jnp.ones(free.shape[:-1], free.dtype)
    rows: list[list[jax.Array]] = []
    place = 0
    for i in range(num_effects):
        left, row = one, []
        for _ in range(i):
            partial = jnp.tanh(free[..., place])
            row.append(partial * left)
            left = left * jnp.exp(0.5 * _log_one_less_square(free[..., place]))
            place += 1
        rows.append([*row, left])
    return rows


def scale_factor(log_scales: jax.Array, free: jax.Array) -> list[list[jax.Array]]:
    """The Cholesky factor of Sigma, row by row."""
    num_effects = log_scales.shape[-1]
    rows = correlation_factor(free, num_effects)
    scales = jnp.exp(log_scales)
    return [[scales[..., i] * entry for entry in rows[i]] for i in range(num_effects)]


def whitened_effects(effects: jax.Array, factor: list[list[jax.Array]]) -> list[jax.Array]:
    """The columns of L^-1 u, by substitution."""
    found: list[jax.Array] = []
    for i, row in enumerate(factor):
        left = effects[..., i] - sum(row[j] * found[j] for j in range(i))
        found.append(left / row[i])
    return found


@trees.record()
class LogNormalScale:
    """Of the noise's scale, by its logarithm: N(center, width^2), up to a constant."""

    center: Float[jax.Array, ""]
    width: Float[jax.Array, ""]

    def __call__(self, log_scale: jax.Array) -> jax.Array:
        return -0.5 * ((log_scale - self.center) / self.width) ** 2


@trees.record()
class EffectsPrior:
    """Of a whole position: coefficients, effects, their scales, and the noise's scale."""

    fixed: trees.PyTree  # the prior of the coefficients, a record; a Gaussian
    factors: tuple[PriorOfScales, ...]
    guesses: tuple[jax.Array, ...]  # of log scales, for searches
    noise: Any  # of the log of the noise's scale, as `LogNormalScale`; None without noise
    figures: Float[jax.Array, " factors"]  # what sentences say, on the user's scale
    # of coefficients of which `fixed` says nothing
    shrunk: ShrunkCoefficients | None = None

    def __call__(self, position: dict[str, jax.Array]) -> jax.Array:
        total = self.shared(position)
        if self.shrunk is not None:
            total = total + self.shrunk(position[FIXED], position[TAU])
        for prior in self.factors:
            log_scales, free = self.scales_of(position, prior.form)
            of_effects = self.of_effects(position, prior.form, log_scales, free)
            total = total + of_effects + prior(log_scales, free)
        return total

    @property
    def smooth(self) -> "EffectsGuide":
        """For searches, in place of a density that grows without end as all effects of a factor
        and their scale go to zero.
        """
        return EffectsGuide(self)

    def sentences(self) -> tuple[str, ...]:
        """The priors in words."""
        said: list[str] = list(getattr(self.fixed, "sentences", tuple)())
        said.extend(() if self.shrunk is None else self.shrunk.words)
        for prior, figure in zip(self.factors, np.asarray(self.figures), strict=True):
            said.extend(prior.sentences(float(figure)))
        return tuple(said)

    def shared(self, position: dict[str, jax.Array]) -> jax.Array:
        """But for what is shrunk."""
        total = self.fixed(position[FIXED])
        if self.noise is not None:
            total = total + self.noise(position[NOISE])
        return total

    def scales_of(
        self, position: dict[str, jax.Array], form: FactorForm
    ) -> tuple[jax.Array, jax.Array]:
        log_scales = jnp.reshape(position[scale_name(form.name)], (form.num_effects,))
        free = (
            position[correlation_name(form.name)]
            if form.num_correlations
            else jnp.zeros((0,), log_scales.dtype)
        )
        return log_scales, free

    def of_effects(
        self,
        position: dict[str, jax.Array],
        form: FactorForm,
        log_scales: jax.Array,
        free: jax.Array,
    ) -> jax.Array:
        """sum_g log N(u_g; 0, Sigma), up to a constant."""
        effects = jnp.reshape(position[form.name], (form.num_levels, form.num_effects))
        factor = scale_factor(jnp.clip(log_scales, -LARGEST_LOG, LARGEST_LOG), free)
        squares = sum(jnp.sum(column**2) for column in whitened_effects(effects, factor))
        logs = sum(jnp.log(row[-1]) for row in factor)
        return jnp.asarray(-0.5 * squares - form.num_levels * logs)


@trees.record()
class EffectsGuide:
    """Effects have scales of a guess, and log scales a normal prior about it."""

    prior: EffectsPrior

    def __call__(self, position: dict[str, jax.Array]) -> jax.Array:
        prior = self.prior
        total = prior.shared(position)
        if prior.shrunk is not None:
            total = total + prior.shrunk.smooth(position[FIXED], position[TAU])
        for factor, guess in zip(prior.factors, prior.guesses, strict=True):
            log_scales, free = prior.scales_of(position, factor.form)
            total = total + prior.of_effects(position, factor.form, guess, jnp.zeros_like(free))
            total = total - 0.5 * jnp.sum(((log_scales - guess) / GUIDE_WIDTH) ** 2)
            total = total - 0.5 * jnp.sum(free**2)
        return total
