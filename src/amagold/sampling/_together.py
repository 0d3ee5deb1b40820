"""One run of several processes: all make it, and the first writes it down."""

import re
from typing import Any

import jax

from amagold.core import trees
from amagold.data import spread_in
from amagold.processes import agree, share
from amagold.samplers import Kernel
from amagold.sampling._interruption import Stopper
from amagold.sampling._provenance import fingerprint, jax_settings, versions
from amagold.sampling._settings import Settings
from amagold.target import Posterior, Target

REMEDY = "run the same script, in the same environment, on all of them"
PARTS = (
    "for parts of one table, open them with amagold.data.open(path, part=(jax.process_index(), "
    "jax.process_count())), or give arrays as amagold.data.part(arrays)"
)


def is_first() -> bool:
    """Whether this process speaks and writes for all."""
    return jax.process_index() == 0


def agree_on(target_or_sampler: Any, target: Target, settings: Settings, *others: Any) -> None:
    """Raise on every process where one of them is about to do something else."""
    if jax.process_count() == 1:
        return
    told = versions()
    told.pop("platform")
    facts = {f"version of {name}": version for name, version in told.items()}
    facts["setting of JAX"] = jax_settings()
    facts["number of devices"] = jax.local_device_count()
    facts["call"] = [settings.to_json(), *map(str, others)]
    facts["model"] = _code_of(target_or_sampler, target)
    agree(facts, REMEDY)
    # of parts the own class has seen to that
    if isinstance(target, Posterior) and spread_in(target) is None:
        agree({"data": fingerprint(target)}, f"{REMEDY}; {PARTS}")


def _code_of(target_or_sampler: Any, target: Target) -> str:
    """What is computed, as JAX sees it, and what it is computed with."""
    words = [type(target).__name__]
    if target.init is not None:
        form = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape, leaf.dtype), target.init)
        words.append(str(jax.make_jaxpr(target.log_prior)(form)))
        if isinstance(target, Posterior):
            words.append(str(jax.make_jaxpr(target.log_likelihood)(form, target.example)))
        words.append(str(trees.known_numbers(target.init).tolist()))
    if isinstance(target_or_sampler, Kernel):
        words.append(str(jax.tree.structure(target_or_sampler.tuned)))
        words.append(str(target_or_sampler.num_steps))
    # functions print with their address, which is another in every process
    return re.sub(r"0x[0-9a-f]+", "", " ".join(words))


class Agreed(Stopper):
    """Stops where any process has to: each asks when the others do."""

    def __init__(self, own: Stopper) -> None:
        super().__init__(None)
        self._own = own

    @property
    def reason(self) -> str | None:
        return next((each for each in share(self._own.reason) if each), None)


def agreed(own: Stopper) -> Stopper:
    """The stopper of all processes."""
    return own if jax.process_count() == 1 else Agreed(own)
