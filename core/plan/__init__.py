"""Order, references and annotations of the blocks of one question. Pure: no engine, no database."""

from core.plan.content import Surroundings
from core.plan.dedup import Form, expand
from core.plan.planner import Plan, PlanRequest, make, make_whole
from core.plan.policy import Decision, Prospect, decide, kind_of
from core.plan.whole import Choice, Cost, choose

__all__ = [
    "Choice",
    "Cost",
    "Decision",
    "Form",
    "Plan",
    "PlanRequest",
    "Prospect",
    "Surroundings",
    "choose",
    "decide",
    "expand",
    "kind_of",
    "make",
    "make_whole",
]
