# What other rooms ask of this one: `__init__.py` reads it, and so do type checkers.

from ._arrow_plan import unit_mass as unit_mass
from ._at_mode import (
    AtMode as AtMode,
    build_at_mode as build_at_mode,
    restored_at_mode as restored_at_mode,
)
from ._conditional_option import horseshoe_in as horseshoe_in
from ._conditional_plan import conditional_plan as conditional_plan, guiding as guiding
from ._effects_plan import EffectsPlan as EffectsPlan
from ._plan import Plan as Plan, make_plan as make_plan
from ._starts import (
    bring_near as bring_near,
    disperse as disperse,
    disperse_over as disperse_over,
)
from ._sweep_plan import SweepPlan as SweepPlan
from ._sweeps import plan_sweeps as plan_sweeps
