"""Order, references and annotations of the blocks of one question. Pure: no engine, no database."""

from core.plan.planner import Plan, PlanRequest, make, make_whole
from core.plan.whole import Choice, Cost, choose

__all__ = ["Choice", "Cost", "Plan", "PlanRequest", "choose", "make", "make_whole"]
