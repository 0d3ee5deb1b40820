"""All of them, the easy ones first."""

import published_hierarchies
import published_regressions

POSTERIORS = [*published_regressions.POSTERIORS, *published_hierarchies.POSTERIORS]
