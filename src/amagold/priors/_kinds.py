"""The kinds of priors that a term may have."""

from dataclasses import dataclass, replace

from amagold.core import checks


@dataclass(frozen=True)
class TermPrior:
    """A density about a location, of every coefficient of a term alike."""

    kind: str
    location: float
    scale: float
    degrees_of_freedom: float | None = None  # of a student_t alone
    slab: float | None = None  # of a horseshoe alone

    def __str__(self) -> str:
        if self.kind == "horseshoe":
            slab = "" if self.slab is None else f", slab={_exact(self.slab)}"
            return f"horseshoe({_exact(self.scale)}{slab})"
        first = [] if self.degrees_of_freedom is None else [self.degrees_of_freedom]
        figures = ", ".join(map(_exact, [*first, self.location, self.scale]))
        return f"{self.kind}({figures})"

    @property
    def is_log_concave(self) -> bool:
        return self.kind not in ("student_t", "horseshoe")


def _exact(figure: float) -> str:
    """As short as it can be read again without loss."""
    short = f"{figure:g}"
    return short if float(short) == figure else repr(figure)


def normal(location: float = 0.0, scale: float = 1.0) -> TermPrior:
    """N(location, scale^2)."""
    return _checked(TermPrior("normal", location, scale))


def laplace(location: float = 0.0, scale: float = 1.0) -> TermPrior:
    """exp(-|x - location| / scale) / (2 scale): most coefficients are next to the location."""
    return _checked(TermPrior("laplace", location, scale))


def student_t(degrees_of_freedom: float, location: float = 0.0, scale: float = 1.0) -> TermPrior:
    """Student's t: few degrees of freedom let single coefficients be far away; one is Cauchy's."""
    checks.number("degrees_of_freedom", degrees_of_freedom, above=0.0, remedy="3 to 7 are usual")
    return _checked(TermPrior("student_t", location, scale, float(degrees_of_freedom)))


def horseshoe(scale: float = 1.0, slab: float | None = None) -> TermPrior:
    """Most coefficients are next to zero, and the others are left as they are.

    beta_j ~ N(0, (lambda_j tau)^2) with lambda_j ~ half-Cauchy(0, 1) and one tau ~
    half-Cauchy(0, scale) for all coefficients that the prior is given to.

    Args:
      scale: of tau. Where p0 of p coefficients are expected to matter, p0 / (p - p0) times the
        width that the data leave a coefficient, sigma / sqrt(N), says so (Piironen and Vehtari
        2017); 1 says little.
      slab: how large the coefficients that matter may well be: the density is multiplied by
        exp(-beta_j^2 / (2 slab^2)), which holds those that the data leave open. None is no slab.
    """
    if slab is not None:
        checks.number(
            "slab", slab, above=0.0, remedy="give how large a coefficient may be, or None"
        )
    found = _checked(TermPrior("horseshoe", 0.0, scale))
    return replace(found, slab=None if slab is None else float(slab))


KINDS = {"normal": normal, "student_t": student_t, "laplace": laplace, "horseshoe": horseshoe}


def _checked(prior: TermPrior) -> TermPrior:
    checks.number("location", prior.location, remedy="give where the coefficient may well lie")
    checks.number("scale", prior.scale, above=0.0, remedy="give how far from there it may well be")
    return TermPrior(
        prior.kind, float(prior.location), float(prior.scale), prior.degrees_of_freedom
    )
