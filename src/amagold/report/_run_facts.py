"""What a run cost, and where it comes from, as names and values."""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

from amagold.report._parameters import MOST_EFFECTS, some_of
from amagold.report._rounded_numbers import seconds, short, whole


class PageFact(NamedTuple):
    """A figure of the run, and what it is."""

    name: str
    value: str


def cost_of(run: Any, effects: Collection[str] = ()) -> list[PageFact]:
    """Times, gradients, and passes over the data; of `effects` of many levels some count."""
    found = [
        PageFact("Compilation", seconds(run.compile_seconds)),
        PageFact("Warm-up", seconds(run.warmup_seconds)),
        PageFact("Sampling", seconds(run.sampling_seconds)),
    ]
    if not run.posterior.sizes["draw"]:
        return found
    some = {
        str(name): some_of(variable, MOST_EFFECTS)
        for name, variable in run.posterior.items()
        if name in effects
    }
    cost = run.cost(run.posterior.drop_dims(_axes(some)).assign(some) if some else None)
    if run.sampling_seconds > 0.0:
        rate = cost.minimum_ess / run.sampling_seconds
        found.append(PageFact("Effective draws per second of sampling", short(rate)))
    found.append(PageFact("Gradient evaluations", whole(cost.num_gradients)))
    if cost.num_data_passes is not None:
        found.append(PageFact("Passes over the data", short(cost.num_data_passes)))
    if cost.ess_per_data_pass:
        of_one = 1.0 / cost.ess_per_data_pass
        found.append(PageFact("Passes for one effective draw", short(of_one)))
    return found


def _axes(variables: dict[str, Any]) -> set[str]:
    """Those beside chains and draws, which are as long as before no more."""
    found = {axis for variable in variables.values() for axis in variable.dims}
    return found - {"chain", "draw"}


def provenance_of(run: Any) -> list[PageFact]:
    """Settings, versions, seed, and a fingerprint of the data."""
    attributes, sizes = run.attributes, run.posterior.sizes
    settings = attributes["settings"]
    found = [
        PageFact("Chains", whole(sizes["chain"])),
        PageFact("Draws of each, kept", whole(sizes["draw"])),
        PageFact("Warm-up of each", whole(settings["num_warmup"])),
        PageFact("Kept is every", _place(settings["thin"])),
        PageFact("Seed", str(attributes["seed"])),
    ]
    found += [PageFact(str(name), str(value)) for name, value in attributes["versions"].items()]
    if attributes.get("data_fingerprint"):
        found.append(PageFact("Fingerprint of the data", str(attributes["data_fingerprint"])))
    found.append(PageFact("Report written", datetime.now(UTC).strftime("%Y-%m-%d")))
    return found


def _place(thin: int) -> str:
    return "draw" if thin == 1 else f"{thin}th draw"


def call_of(run: Any, formula: str, family: str) -> str:
    """The call that would give the same draws again."""
    settings = run.attributes["settings"]
    names = ("num_samples", "num_warmup", "num_chains", "thin", "seed")
    given = {} if run.model is None else run.model.arguments
    asked = {name: value for name, value in given.items() if value not in (None, False)}
    options = {**asked, **{name: settings[name] for name in names}}
    told = ", ".join(f"{name}={_as_code(name, value)}" for name, value in options.items())
    return f"amagold.fit({formula!r}, table, {family!r}, {told})"


def _as_code(name: str, value: Any) -> str:
    """An argument as it was given: priors as texts, arrays by their name."""
    if isinstance(value, Mapping):
        return repr({key: str(each) for key, each in value.items()})
    return name if isinstance(value, str) and value.startswith("<") else repr(value)
