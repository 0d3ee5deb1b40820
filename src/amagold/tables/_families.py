"""The families that a table can be fitted with."""

from amagold.models._noise_names import NOISE_NAMES

FAMILIES = NOISE_NAMES
