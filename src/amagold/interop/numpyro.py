"""A kernel for `numpyro.infer.MCMC`: exact draws that look at few rows, by NumPyro's own driver."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.adaptation import Warmup
from amagold.adaptation._block_adaptation import SHORT
from amagold.core import trees
from amagold.core.optional_packages import required
from amagold.interop._from_numpyro import target_of
from amagold.samplers import Sampler
from amagold.sampling._prepare import Prepared, prepare
from amagold.sampling._settings import Settings
from amagold.trajectory._mass_matrix import DiagonalMass, as_mass

required("numpyro", "numpyro")
from numpyro.infer.hmc_util import warmup_adapter  # noqa: E402
from numpyro.infer.mcmc import MCMCKernel  # noqa: E402
from numpyro.infer.util import constrain_fn  # noqa: E402
from numpyro.util import is_prng_key  # noqa: E402

NUM_STARTS = 32  # places around the mode, of which each chain takes one
INITIAL_SHARE = 5  # of the warm-up, one part in so many, comes in from far out by short steps


class AMAGOLDState(NamedTuple):
    """What the next transition needs, and what `extra_fields` may ask for."""

    i: jax.Array  # transitions so far
    z: Any  # free numbers, by the names of sites
    potential_energy: jax.Array  # up to a constant; NaN where the test does not compute it
    accept_prob: jax.Array
    mean_accept_prob: jax.Array
    diverging: jax.Array
    num_gradient_examples: jax.Array
    num_energy_examples: jax.Array
    num_steps: jax.Array
    step_size: jax.Array
    adapt_state: Any
    sampler_state: Any
    rng_key: jax.Array


class AMAGOLD(MCMCKernel):
    """Samples a NumPyro model as `amagold.sample` does, one transition at a time.

    Chains may be sequential, vectorized or parallel. A draw is NaN, and so are all after it, if a
    row ever broke the bound that an exact test on few rows rests on: none has that is attached by
    `amagold.from_numpyro`.

    Args:
      model: a function with NumPyro's primitives.
      plate: the name of the plate over the examples; None is a model without one.
      sampler: target -> sampler, such as `lambda target: amagold.hmc(target, step_size=0.1)`. None
        plans as `amagold.sample` does.
      warmup: what the warm-up adapts, of each chain by itself, as NumPyro does; None is the plan's
        own choice, and nothing for a given sampler.
    """

    def __init__(
        self,
        model: Callable[..., Any],
        *,
        plate: str | None = "data",
        sampler: Callable[[Any], Sampler] | None = None,
        warmup: Warmup | None = None,
    ) -> None:
        self._model, self._plate, self._make = model, plate, sampler
        self._warmup = Warmup() if warmup is None else warmup
        self._known: tuple[Any, Prepared] | None = None
        self._adapt: Any = None

    @property
    def model(self) -> Callable[..., Any]:
        return self._model

    @property
    def sample_field(self) -> str:
        return "z"

    @property
    def default_fields(self) -> Any:
        return ("z", "diverging")

    @property
    def plan(self) -> Any:
        """What was chosen and why, after the first `init`; print it."""
        return None if self._known is None else self._known[1].plan

    def get_diagnostics_str(self, state: AMAGOLDState) -> Any:
        return (
            f"step size {float(state.step_size):.2e}, {int(state.num_energy_examples)} rows in the "
            f"last test. acc. prob={float(state.mean_accept_prob):.2f}"
        )

    def init(
        self,
        rng_key: jax.Array,
        num_warmup: int,
        init_params: Any,
        model_args: tuple[Any, ...],
        model_kwargs: dict[str, Any],
    ) -> AMAGOLDState:
        """The state of one chain, or of as many as there are keys. `init_params` are free numbers,
        as for NumPyro's own kernels.
        """
        ready = self._prepared(num_warmup, model_args, model_kwargs or {})
        self._num_warmup = num_warmup
        if is_prng_key(rng_key):
            return self._first(ready, rng_key, init_params)
        if init_params is None:
            return jax.vmap(lambda key: self._first(ready, key, None))(rng_key)
        return jax.vmap(lambda key, start: self._first(ready, key, start))(rng_key, init_params)

    def sample(
        self, state: AMAGOLDState, model_args: tuple[Any, ...], model_kwargs: dict[str, Any]
    ) -> AMAGOLDState:
        """One transition of one chain, or of all."""
        if is_prng_key(state.rng_key):
            return self._next(state)
        return jax.vmap(self._next)(state)

    def postprocess_fn(self, model_args: tuple[Any, ...], model_kwargs: dict[str, Any]) -> Any:
        """Free numbers to values of the sites, deterministic ones included."""
        from numpyro import handlers

        seeded = handlers.seed(self._model, rng_seed=0)
        return lambda z: constrain_fn(
            seeded, model_args, model_kwargs or {}, z, return_deterministic=True
        )

    def _prepared(self, num_warmup: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Prepared:
        """Target, plan and starts, found once for the same arguments; not while NumPyro traces."""
        leaves = jax.tree.leaves((args, kwargs))
        if self._known is not None:
            (earlier, count), ready = self._known
            same = len(earlier) == len(leaves) and all(map(_is_same, earlier, leaves))
            if same and count == num_warmup:
                return ready
        if not trees.is_concrete(leaves):
            raise ValueError(
                "model_args must be known arrays before the first run, got traced ones; call "
                "mcmc.run outside of jit"
            )
        with jax.ensure_compile_time_eval():
            # its driver wants free numbers
            target = target_of(self._model, args, kwargs, self._plate, is_mixed=False)
            given = target if self._make is None else self._make(target)
            settings = Settings(1, num_warmup, NUM_STARTS, 0, 1, self._warmup)
            ready = prepare(given, settings, None, None)
        self._known = ((leaves, num_warmup), ready)
        return ready

    def _first(self, ready: Prepared, key: jax.Array, init_params: Any) -> AMAGOLDState:
        sampler = ready.sampler
        # as `amagold.run_chains` does it for one chain
        start_key, _ = jax.random.split(key)
        if init_params is None:
            place = jax.random.randint(jax.random.fold_in(key, 1), (), 0, NUM_STARTS)
            init_params = jax.tree.map(lambda leaf: jnp.asarray(leaf)[place], ready.positions)
        state = sampler.init(init_params, jax.random.split(start_key, 1)[0])
        adapt: Any = ()
        step_size: Any = jnp.asarray(sampler.settings.get("step_size", jnp.nan), jnp.float32)
        if self._adapts(ready):
            init, self._adapt = warmup_adapter(
                ready.rules.num_warmup,
                adapt_step_size=ready.rules.target_acceptance is not None,
                adapt_mass_matrix=ready.rules.mass is not None,
                dense_mass=ready.rules.mass == "dense",
                target_accept_prob=ready.rules.target_acceptance or 0.8,
            )
            inverse = _inverse_mass(sampler, state.position, ready.rules.mass == "dense")
            adapt = init(
                (state.position,), key, step_size, inverse, mass_matrix_size=len(inverse)
            )._replace(rng_key=None)
        zero = jnp.zeros(())
        return AMAGOLDState(
            i=jnp.zeros((), jnp.int32),
            z=state.position,
            potential_energy=_energy(sampler, state),
            accept_prob=zero,
            mean_accept_prob=zero,
            diverging=jnp.zeros((), bool),
            num_gradient_examples=zero,
            num_energy_examples=zero,
            num_steps=jnp.asarray(sampler.num_steps, jnp.int32),
            step_size=step_size,
            adapt_state=adapt,
            sampler_state=state,
            rng_key=key,
        )

    def _next(self, state: AMAGOLDState) -> AMAGOLDState:
        assert self._known is not None
        ready = self._known[1]
        sampler = self._tuned(ready, state)
        # chain 0 of `amagold.run_chains` with the chain's own key
        _, run_key = jax.random.split(state.rng_key)
        key = jax.random.fold_in(jax.random.fold_in(run_key, 0), state.i)
        after, info = sampler.step(key, state.sampler_state)
        broken: Any = info.broken_bound
        if not isinstance(broken, tuple):
            after = after._replace(
                position=jax.tree.map(
                    lambda leaf: jnp.where(broken >= 0, jnp.nan, leaf), after.position
                )
            )
        is_warmup = state.i < self._num_warmup
        adapt = state.adapt_state
        if self._adapts(ready):
            adapted = self._adapt(state.i, info.acceptance_rate, (after.position,), adapt)
            adapt = trees.where(is_warmup, adapted, adapt)
        count = state.i + 1
        seen = jnp.where(is_warmup, count, count - self._num_warmup).astype(jnp.float32)
        mean = state.mean_accept_prob
        step_size = sampler.settings.get("step_size", jnp.nan)
        return state._replace(
            i=count,
            z=after.position,
            potential_energy=_energy(sampler, after),
            accept_prob=info.acceptance_rate,
            mean_accept_prob=mean + (info.acceptance_rate - mean) / seen,
            diverging=info.is_divergent,
            num_gradient_examples=jnp.asarray(info.num_gradient_examples, jnp.float32),
            num_energy_examples=jnp.asarray(info.num_energy_examples, jnp.float32),
            step_size=jnp.asarray(step_size, jnp.float32),
            adapt_state=adapt,
            sampler_state=after,
        )

    def _adapts(self, ready: Prepared) -> bool:
        """Whether NumPyro's warm-up tunes it; a plan that is nearly right is not tuned."""
        rules = ready.rules
        return not rules.by_block and (rules.target_acceptance, rules.mass) != (None, None)

    def _tuned(self, ready: Prepared, state: AMAGOLDState) -> Sampler:
        sampler, rules = ready.sampler, ready.rules
        if self._adapts(ready):
            adapted = state.adapt_state
            settings: dict[str, Any] = {}
            if rules.target_acceptance is not None:
                settings["step_size"] = adapted.step_size
            if rules.mass == "diagonal":
                settings["mass"] = DiagonalMass(jnp.sqrt(adapted.inverse_mass_matrix))
            if rules.mass == "dense":
                settings["mass"] = as_mass(jnp.linalg.inv(adapted.inverse_mass_matrix))
            return sampler.with_settings(**settings)
        if rules.by_block and rules.begins_short:
            step_size = jnp.asarray(sampler.settings["step_size"], jnp.float32)
            is_coming_in = state.i < self._num_warmup // INITIAL_SHARE
            return sampler.with_settings(
                step_size=jnp.where(is_coming_in, SHORT * step_size, step_size)
            )
        return sampler


def _energy(sampler: Sampler, state: Any) -> jax.Array:
    found: Any = sampler.acceptance.energy(state.memory)
    return jnp.asarray(jnp.nan if isinstance(found, tuple) else found, jnp.float32)


def _inverse_mass(sampler: Sampler, position: Any, is_dense: bool) -> jax.Array:
    """What the sampler begins with: M^-1, or its diagonal."""
    size = trees.size(position)
    mass: Any = sampler.settings["mass"]

    def column(unit: jax.Array) -> jax.Array:
        # M^-1 = W^T W
        return trees.flatten(mass.velocity(mass.force(trees.unflatten_like(unit, position))))

    inverse = jax.vmap(column)(jnp.eye(size))
    return inverse if is_dense else jnp.diagonal(inverse)


def _is_same(one: Any, other: Any) -> bool:
    return one is other or (
        not isinstance(one, (np.ndarray, jax.Array)) and type(one) is type(other) and one == other
    )
