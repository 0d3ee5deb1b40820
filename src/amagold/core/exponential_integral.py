"""The exponential integral E1(x), scaled so that neither end of it overflows, and draws by it."""

import math

import jax
import jax.numpy as jnp

EULER = 0.5772156649015329
# Abramowitz and Stegun 5.1.56: x exp(x) E1(x) = P(1/x) / Q(1/x) for x >= 1, to 2e-8
NUMERATOR = (1.0, 8.5733287401, 18.0590169730, 8.6347608925, 0.2677737343)
DENOMINATOR = (1.0, 9.5733223454, 25.6329561486, 21.0996530827, 3.9584969228)
# -(-1)^k / (k k!): the next one is below 1e-10
SERIES = [0.0, *(-((-1.0) ** k) / (k * math.factorial(k)) for k in range(1, 13))]
SMALLEST = 1e-30  # E1 has a logarithmic pole at zero, and float32 ends a little farther on
NUM_NEWTON = 7


@jax.custom_jvp
def log_scaled_e1(x: jax.Array) -> jax.Array:
    """log(exp(x) E1(x)) for x >= 0; below 1e-30 what it is there."""
    x = jnp.maximum(x, SMALLEST)
    return jnp.where(x < 1.0, _near(jnp.minimum(x, 1.0)), _far(jnp.maximum(x, 1.0)))


@log_scaled_e1.defjvp
def _derivative(
    primals: tuple[jax.Array], tangents: tuple[jax.Array]
) -> tuple[jax.Array, jax.Array]:
    (x,), (tangent,) = primals, tangents
    found, at = log_scaled_e1(x), jnp.maximum(x, SMALLEST)
    inverse = 1.0 / jnp.maximum(at, 1.0)
    # d log g / dx = 1 - 1 / (x g); far out both are near one, and the difference is a polynomial's
    left = [p - q for p, q in zip(NUMERATOR, DENOMINATOR, strict=True)]
    far = _polynomial(left, inverse) / _polynomial(list(NUMERATOR), inverse)
    near = 1.0 - jnp.exp(-log_scaled_e1(jnp.minimum(at, 1.0))) / jnp.minimum(at, 1.0)
    return found, jnp.where(x < SMALLEST, 0.0, jnp.where(at < 1.0, near, far)) * tangent


def tail_growth(x: jax.Array, share: jax.Array) -> jax.Array:
    """d >= 0 with E1(x exp(d)) = share E1(x): the inverse of a distribution function.

    With g = exp(x) E1(x), F(d) = log g(x e^d) - log g(x) - x (e^d - 1) - log share is concave and
    falls, with slope -1 / g(x e^d), so that Newton's method comes down to its zero from any d
    beyond it.
    """
    x = jnp.maximum(x, SMALLEST)
    here, wanted = log_scaled_e1(x), jnp.log(share)
    # g falls, so x (e^d - 1) <= -log share; and E1(w) < log(1 + 1 / w)
    integral = jnp.minimum(jnp.exp(here - x + wanted), 80.0)
    beyond = jnp.where(integral > 0.0, -jnp.log(jnp.expm1(integral)) - jnp.log(x), jnp.inf)
    growth = jnp.maximum(jnp.minimum(jnp.log1p(-wanted / x), beyond), 0.0)

    def newton(_: int, growth: jax.Array) -> jax.Array:
        there = log_scaled_e1(x * jnp.exp(growth))
        miss = there - here - x * jnp.expm1(growth) - wanted
        return jnp.maximum(growth + miss * jnp.exp(there), 0.0)

    return jax.lax.fori_loop(0, NUM_NEWTON, newton, growth)


def _near(x: jax.Array) -> jax.Array:
    # E1(x) = -euler - log x - sum_k (-x)^k / (k k!)
    return x + jnp.log(_polynomial(SERIES, x) - EULER - jnp.log(x))


def _far(x: jax.Array) -> jax.Array:
    inverse = 1.0 / x
    return jnp.log(
        inverse * _polynomial(list(NUMERATOR), inverse) / _polynomial(list(DENOMINATOR), inverse)
    )


def _polynomial(coefficients: list[float], at: jax.Array) -> jax.Array:
    total = jnp.zeros_like(at)
    for coefficient in reversed(coefficients):
        total = total * at + coefficient
    return total
