"""Order, references and annotations of the blocks of one question. Pure: no engine, no database."""

from core.plan.annotate import annotation
from core.plan.content import Surroundings
from core.plan.dedup import Form, expand
from core.plan.excerpt import window
from core.plan.phrases import Phrases, phrases_for
from core.plan.planner import EVERYTHING, Plan, PlanRequest, Rules, make, make_whole
from core.plan.policy import SHORTEST_PART, Decision, Prospect, TimeLeft, as_found, decide, kind_of
from core.plan.riders import Ridable
from core.plan.whole import Choice, Cost, choose

__all__ = [
    "EVERYTHING",
    "SHORTEST_PART",
    "Choice",
    "Cost",
    "Decision",
    "Form",
    "Phrases",
    "Plan",
    "PlanRequest",
    "Prospect",
    "Ridable",
    "Rules",
    "Surroundings",
    "TimeLeft",
    "annotation",
    "as_found",
    "choose",
    "decide",
    "expand",
    "kind_of",
    "make",
    "make_whole",
    "phrases_for",
    "window",
]
