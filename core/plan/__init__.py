"""Order, references and annotations of the blocks of one question. Pure: no engine, no database."""

from core.plan.planner import Plan, PlanRequest, make

__all__ = ["Plan", "PlanRequest", "make"]
