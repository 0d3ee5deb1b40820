"""Draws by the terms of a formula, on the scale of the table."""

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from amagold.core import trees
from amagold.models._noise_names import THRESHOLD
from amagold.models._ordinal import OrdinalScale
from amagold.models._priors import LOG_SCALE, LOG_SHAPE
from amagold.models._scale import UserScale
from amagold.tables._term_codes import Term

LOG_TAU = "log_tau"  # in the position; it comes after the coefficients and the noise


@trees.record(static=("terms", "noise", "has_classes", "taus"))
class TermScale:
    """The flat vector of coefficients as one array for each term, and back; with `noise`, the
    logarithm of the noise's scale is its scale, under that name, and likewise with `taus`.
    """

    # None: the vector is on the user's scale as it is
    scale: UserScale | OrdinalScale | None
    terms: tuple[Term, ...]
    noise: str | None
    has_classes: bool = False  # a last axis, of a coefficient for each class
    taus: tuple[str, ...] = ()  # what the scales of horseshoe priors are called

    def __call__(self, position: Any) -> dict[str, Any]:
        found = position if self.scale is None else self.scale(position)
        flat = found["coefficients"] if isinstance(found, dict) else found
        if self.has_classes:
            flat = flat.swapaxes(-1, -2)
        named = {
            term.name: flat[..., term.places[0]]
            if term.levels is None
            else flat[..., np.array(term.places)]
            for term in self.terms
        }
        if self.has_classes:
            named = {
                term.name: named[term.name]
                if term.levels is None
                else named[term.name].swapaxes(-1, -2)
                for term in self.terms
            }
        if self.noise == THRESHOLD:
            named[THRESHOLD] = found["cutpoints"]
        elif self.noise:
            log_scale = found[self.log_noise]
            here = jnp if isinstance(log_scale, Tracer) else np
            named[self.noise] = here.exp(log_scale)
        for number, name in enumerate(self.taus):
            log_tau = found[LOG_TAU][..., number]
            named[name] = (jnp if isinstance(log_tau, Tracer) else np).exp(log_tau)
        return named

    @property
    def log_noise(self) -> str:
        """What the position calls its logarithm."""
        return LOG_SCALE if self.noise == "sigma" else LOG_SHAPE

    def inverse(self, reported: dict[str, Any]) -> Any:
        by_term = {term.name: np.asarray(reported[term.name]) for term in self.terms}
        if self.has_classes:
            by_term = {
                term.name: by_term[term.name]
                if term.levels is None
                else by_term[term.name].swapaxes(-1, -2)
                for term in self.terms
            }
        first = by_term[self.terms[0].name].shape
        leading = first if self.terms[0].levels is None else first[:-1]
        width = sum(len(term.places) for term in self.terms)
        flat = np.zeros((*leading, width))
        for term in self.terms:
            values = by_term[term.name]
            flat[..., np.array(term.places)] = values[..., None] if term.levels is None else values
        found: Any = flat.swapaxes(-1, -2) if self.has_classes else flat
        if self.noise == THRESHOLD:
            found = {"coefficients": flat, "cutpoints": np.asarray(reported[THRESHOLD])}
        elif self.noise:
            found = {"coefficients": flat, self.log_noise: np.log(reported[self.noise])}
        if self.taus:
            found = found if isinstance(found, dict) else {"coefficients": found}
            log_taus = [np.log(np.asarray(reported[name])) for name in self.taus]
            found = {**found, LOG_TAU: np.stack(log_taus, axis=-1)}
        return found if self.scale is None else self.scale.inverse(found)
