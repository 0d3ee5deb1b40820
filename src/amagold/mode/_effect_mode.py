"""Where a mixed model is expanded: coefficients and effects by Newton's method given the scales of
effects, the scales by EM on the expansion (a step needs no rows).

The joint mode of effects and scales would be none: with all effects at zero the density grows
without end as their scale falls. Any reference is exact; a good one makes tests accept.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.mode._effect_solver import EffectSolver
from amagold.mode._effect_sums import EffectSums, forms_of, sums_at
from amagold.target import Posterior
from amagold.target._effects_prior import FactorForm
from amagold.target._group_effects import FIXED, NOISE, correlation_name, scale_name

MOST_PASSES = 30  # 7 or 8 are usual; effects of many units, one step after the other, take more
SMALL = 0.05  # of a standard deviation, by which the last step moves
# that a coefficient, or an effect, moves in one step: far from the mode the parabola is wrong
LONGEST = 3.0
ROUNDS = {1: 30}  # of EM in a pass, with one factor; each of several factors needs a solve
FEW_ROUNDS = 3


class FixedPrior(NamedTuple):
    """The coefficients' prior, or what stands for it where it is no Gaussian, at a position:
    gradient and Hessian of its energy.
    """

    gradient: np.ndarray
    matrix: np.ndarray


class NewtonStep(NamedTuple):
    slopes: np.ndarray
    effects: list[np.ndarray]
    length: float  # in standard deviations, before anything is cut short
    solver: EffectSolver


def fixed_prior(target: Posterior, theta: np.ndarray) -> FixedPrior:
    prior: Any = target.log_prior
    energy = lambda at: -prior.fixed(at)  # noqa: E731
    at = jnp.asarray(theta, jnp.float32)
    parts = jax.jit(lambda at: (jax.grad(energy)(at), jax.hessian(energy)(at)))(at)
    gradient, matrix = (np.array(part, np.float64) for part in parts)
    if prior.shrunk is not None:
        places = np.asarray(prior.shrunk.horseshoe.places)
        precisions = np.asarray(prior.shrunk.guide.precisions(at), np.float64)
        gradient[places] += precisions * np.asarray(at, np.float64)[places]
        matrix[places, places] += precisions
    return FixedPrior(gradient, matrix)


def covariance_of(position: dict[str, np.ndarray], form: FactorForm) -> np.ndarray:
    """Sigma of a factor at a position."""
    log_scales = np.reshape(np.asarray(position[scale_name(form.name)], np.float64), -1)
    scales = np.exp(log_scales)
    if not form.num_correlations:
        return np.diag(scales**2)
    free = np.asarray(position[correlation_name(form.name)], np.float64)
    factor, place = np.zeros((form.num_effects, form.num_effects)), 0
    for i in range(form.num_effects):
        left = 1.0
        for j in range(i):
            factor[i, j] = np.tanh(free[place]) * left
            left /= np.cosh(free[place])
            place += 1
        factor[i, i] = left
    factor = scales[:, None] * factor
    return factor @ factor.T


def with_covariance(
    position: dict[str, np.ndarray], form: FactorForm, covariance: np.ndarray
) -> dict[str, np.ndarray]:
    """The position with this Sigma of a factor."""
    scales = np.sqrt(np.diag(covariance))
    found, name = dict(position), scale_name(form.name)
    found[name] = np.reshape(np.log(scales), np.shape(position[name])).astype(np.float32)
    if form.num_correlations:
        factor = np.linalg.cholesky(covariance / np.outer(scales, scales))
        free = []
        for i in range(form.num_effects):
            left = 1.0
            for j in range(i):
                partial = np.clip(factor[i, j] / np.sqrt(left), -0.999, 0.999)
                free.append(np.arctanh(partial))
                left *= 1.0 - partial**2
        found[correlation_name(form.name)] = np.array(free, np.float32)
    return found


def effects_of(position: dict[str, np.ndarray], form: FactorForm) -> np.ndarray:
    values = np.asarray(position[form.name], np.float64)
    return values.reshape(form.num_levels, form.num_effects)


def find_reference(target: Posterior) -> EffectSums | None:
    """The sums at the place that Newton's method and EM lead to; None where they lead nowhere."""
    forms = forms_of(target)
    init: Any = target.init
    position = {name: np.asarray(values) for name, values in init.items()}
    covariances = [covariance_of(position, form) for form in forms]
    sums = step = None
    for _ in range(MOST_PASSES):
        sums = sums_at(target, position)
        if not np.isfinite(sums.gradient).all():
            return None
        prior = fixed_prior(target, position[FIXED])
        before = [np.log(np.diag(covariance)).copy() for covariance in covariances]
        for _ in range(ROUNDS.get(len(forms), FEW_ROUNDS)):
            try:
                step = newton_step(target, sums, prior, covariances)
            except np.linalg.LinAlgError:
                return None
            covariances = _em(target, sums, step, position, forms)
        assert step is not None
        rate = [
            np.abs(np.log(np.diag(now)) - then).max() * np.sqrt(form.num_levels / 2.0)
            for now, then, form in zip(covariances, before, forms, strict=True)
        ]
        noise = _noise(sums, step.solver) if NOISE in position else None
        if noise is not None:
            rate.append(abs(float(noise - position[NOISE])) * 10.0)
        if step.length < SMALL and max(rate) < 10.0 * SMALL:
            return sums
        position = _moved(position, step, forms, covariances)
        if noise is not None:
            position[NOISE] = noise
    return sums if sums is not None and step is not None and step.length < LONGEST else None


def newton_step(
    target: Posterior, sums: EffectSums, prior: FixedPrior, covariances: list[np.ndarray]
) -> NewtonStep:
    """From the sums, given Sigma of every factor; no rows."""
    forms = forms_of(target)
    precisions = [np.linalg.inv(covariance) for covariance in covariances]
    solver = EffectSolver(sums, precisions)
    slope = sums.gradient + prior.gradient
    of_effects = [
        factor.gradient + effects_of(sums.position, form) @ precision
        for factor, form, precision in zip(sums.factors, forms, precisions, strict=True)
    ]
    width = len(slope)
    border = np.concatenate([factor.border.reshape(-1, width) for factor in sums.factors])
    right = np.concatenate([part.reshape(-1, 1) for part in of_effects])
    both = solver.solve(np.hstack([border, right]))
    shifts, alone = both[:, :-1], both[:, -1]
    # S = A + prior - b (W + Q)^-1 b
    own = sums.matrix + prior.matrix - border.T @ shifts
    factor = np.linalg.cholesky(0.5 * (own + own.T))
    slopes = -np.linalg.solve(own, slope - border.T @ alone)
    effects = solver.split((-alone - shifts @ slopes)[:, None])
    moves = [np.abs(factor.T @ slopes).max()]
    for each, block in zip(effects, solver.blocks, strict=True):
        widths = np.sqrt(np.einsum("gaa->ga", block))
        moves.append(np.abs(each[..., 0] * widths).max())
    # with Gaussian noise the parabola is right everywhere, in whatever units
    if NOISE not in sums.position:
        # the coefficients together, and each level by itself: one far out holds up no other
        slopes = slopes * min(1.0, LONGEST / np.abs(slopes).max())
        cut = np.clip(-alone - shifts @ slopes, -LONGEST, LONGEST)
        effects = solver.split(cut[:, None])
    return NewtonStep(slopes, [each[..., 0] for each in effects], max(moves), solver)


def _em(
    target: Posterior,
    sums: EffectSums,
    step: NewtonStep,
    position: dict[str, np.ndarray],
    forms: tuple[FactorForm, ...],
) -> list[np.ndarray]:
    """Sigma = mean of u u^T + Var u over the levels, and one more level as the prior has it."""
    prior: Any = target.log_prior
    found = []
    for number, form in enumerate(forms):
        effects = effects_of(position, form) + step.effects[number]
        total = effects.T @ effects + step.solver.inverses[number].sum(axis=0)
        usual = np.diag(np.asarray(prior.factors[number].scales, np.float64) ** 2)
        found.append((total + 0.25 * usual) / (form.num_levels + 0.25))
    return found


def _moved(
    position: dict[str, np.ndarray],
    step: NewtonStep,
    forms: tuple[FactorForm, ...],
    covariances: list[np.ndarray],
) -> dict[str, np.ndarray]:
    """In float32, as the device has it, so that all sums are of one place."""
    found = dict(position)
    found[FIXED] = (position[FIXED] + step.slopes).astype(np.float32)
    for form, effects, covariance in zip(forms, step.effects, covariances, strict=True):
        values = effects_of(position, form) + effects
        found[form.name] = values.reshape(np.shape(position[form.name])).astype(np.float32)
        found = with_covariance(found, form, covariance)
    return found


def _noise(sums: EffectSums, solver: EffectSolver) -> np.ndarray:
    """log s of the residuals: f = w (e^2 / (2 s^2) + log s), f'' = w / s^2, and as many of them
    as parameters do not take.
    """
    log_scale = float(sums.position[NOISE])
    variance = np.exp(2.0 * log_scale)
    observations = sums.weight * variance
    squares = 2.0 * variance * (sums.energy - observations * log_scale)
    taken = len(sums.gradient) + sum(
        float(np.einsum("gab,gba->", factor.curvature, inverse))
        for factor, inverse in zip(sums.factors, solver.inverses, strict=True)
    )
    free = max(observations - taken, 0.1 * observations)
    return np.asarray(0.5 * np.log(max(squares, 1e-12 * free) / free), np.float32)
