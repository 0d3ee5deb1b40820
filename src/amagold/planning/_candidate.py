"""One way to sample, and what it is predicted to bring and to cost."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """One gradient, trajectory and test with the best step size, and the figures predicted for
    them.
    """

    gradient: str  # "full", "minibatch", "expansion" or "control variate"
    batch_plan: str | None
    batch_size: int | None
    mass: str  # "diagonal", "dense" or, of a mixed model, "arrow"
    num_steps: int  # T
    step_size: float  # epsilon, to start adaptation from
    acceptance: float  # predicted at step_size
    noise_variance: float  # of log a, from minibatches
    discretisation_variance: float  # of log a, from the finite step
    gradient_share: float  # f, of the cost
    ess_per_transition: float
    cost_per_transition: float  # in evaluations of one example
    order: int | None = None  # of the control variates
    test: str = "full"  # or "tuna": exact on a few examples
    test_examples: float = 0.0  # that a test is expected to look at
    rare_examples: int = 0  # that an expansion's gradient and its test look at every time
    # or "rotation", exact for a Gaussian, or "conditional", part by part under a horseshoe prior
    integrator: str = "leapfrog"

    @property
    def cost_per_draw(self) -> float:
        """The cost of one effective draw."""
        return self.cost_per_transition / self.ess_per_transition
