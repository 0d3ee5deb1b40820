"""The plans that keep exactness, and the names of those that do not."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp

from amagold.core.randomness import row_numbers


@runtime_checkable
class BatchPlan(Protocol):
    """Names the examples of a trajectory's batches: a (num_steps, batch_size) array of row
    numbers.
    """

    @property
    def is_reversal_invariant(self) -> bool: ...

    def check(self, num_steps: int, batch_size: int, num_examples: int) -> None: ...

    def draw(
        self, key: jax.Array, num_steps: int, batch_size: int, num_examples: int
    ) -> jax.Array: ...


@dataclass(frozen=True)
class Iid:
    """Every row number drawn independently and uniformly, with replacement: any order is as likely
    as its reverse.
    """

    is_reversal_invariant: bool = True

    def check(self, num_steps: int, batch_size: int, num_examples: int) -> None:
        pass

    def draw(self, key: jax.Array, num_steps: int, batch_size: int, num_examples: int) -> jax.Array:
        return row_numbers(key, (num_steps, batch_size), num_examples)


@dataclass(frozen=True)
class Epoch:
    """A fresh shuffle of the data for every trajectory, dealt into batches: a uniform order
    reversed is a uniform order.

    No example repeats within an epoch, so the gradients' errors cancel as the trajectory sees more
    of the data; after a whole epoch (num_steps * batch_size = N) their leading part is gone.
    """

    is_reversal_invariant: bool = True

    def check(self, num_steps: int, batch_size: int, num_examples: int) -> None:
        per_epoch = num_examples // batch_size
        if num_steps > per_epoch and num_steps % per_epoch:
            raise ValueError(
                f"num_steps must be at most the {per_epoch} batches of an epoch, or whole epochs, "
                "with plan='epoch', got "
                f"{num_steps}: an epoch cut short by the trajectory's end reads differently "
                "backwards, which breaks exactness; "
                "lower num_steps or batch_size, or use plan='palindrome' or plan='iid'"
            )

    def draw(self, key: jax.Array, num_steps: int, batch_size: int, num_examples: int) -> jax.Array:
        per_epoch = num_examples // batch_size
        num_epochs = max(1, num_steps // per_epoch)
        dealt = min(num_steps, per_epoch)
        shuffles = [
            jax.random.permutation(epoch_key, num_examples)[: dealt * batch_size]
            for epoch_key in jax.random.split(key, num_epochs)
        ]
        return jnp.concatenate(shuffles).reshape(num_steps, batch_size)


@dataclass(frozen=True)
class Palindrome:
    """The first half of the trajectory sweeps a fresh shuffle, the second half sweeps it back: it
    is its own reverse.
    """

    is_reversal_invariant: bool = True

    def check(self, num_steps: int, batch_size: int, num_examples: int) -> None:
        per_epoch, half = num_examples // batch_size, -(-num_steps // 2)
        if half > per_epoch:
            raise ValueError(
                f"num_steps must be at most {2 * per_epoch}, twice the batches of an epoch, with "
                f"plan='palindrome', got {num_steps}; "
                "lower num_steps or batch_size"
            )

    def draw(self, key: jax.Array, num_steps: int, batch_size: int, num_examples: int) -> jax.Array:
        half = -(-num_steps // 2)
        there = jax.random.permutation(key, num_examples)[: half * batch_size].reshape(
            half, batch_size
        )
        return jnp.concatenate([there, there[: num_steps - half][::-1]])


@dataclass(frozen=True)
class External:
    """Batches come from an outside loader, in any order; a fair coin reverses the T of them, which
    makes any order exact.

    The loader must not look at the chain. `draw` gives the coin; `Sampler.step(key, state,
    batches)` takes the T batches.
    """

    is_reversal_invariant: bool = True

    def check(self, num_steps: int, batch_size: int, num_examples: int) -> None:
        pass

    def draw(self, key: jax.Array, num_steps: int, batch_size: int, num_examples: int) -> jax.Array:
        return jax.random.bernoulli(key)


PLANS = {"iid": Iid(), "epoch": Epoch(), "palindrome": Palindrome(), "external": External()}

_REPEATED_ORDER = (
    "every trajectory would see its batches in one direction only, so going back is less likely "
    "than going forth"
)
REFUSED = {
    "fixed": _REPEATED_ORDER,
    "sequential": _REPEATED_ORDER,
    "unshuffled": _REPEATED_ORDER,
    "straddling": "an epoch that runs on into the next trajectory ties its batches to the state "
    "they already moved",
    "running": "an epoch that runs on into the next trajectory ties its batches to the state they "
    "already moved",
    "ragged": "a short last batch that always comes last would come first on the way back",
}


def plan_by_name(plan: str | BatchPlan) -> BatchPlan:
    """The plan of that name; a plan that is not exact is refused with the reason."""
    if not isinstance(plan, str):
        return plan
    if plan in PLANS:
        return PLANS[plan]
    names = ", ".join(repr(name) for name in PLANS)
    if plan in REFUSED:
        raise ValueError(
            f"plan={plan!r} breaks exactness: {REFUSED[plan]}. Use one of {names}; 'external' "
            "takes the batches of any loader "
            "and makes them exact by reversing them on a fair coin"
        )
    raise ValueError(f"plan must be one of {names}, got {plan!r}")
