"""Turns a query into a checked plan. Contradictions are refused here, before Spark is used."""

from slackwater.plan.aggregates import Aggregate, Part
from slackwater.plan.catalog import Catalog, Stream
from slackwater.plan.combined import CombinedPlan, is_combined, make_combined_plan, plan_query_text
from slackwater.plan.explain import explain, explain_combined, explain_query, explain_standing
from slackwater.plan.plan import Kind, Path, Plan, Shape
from slackwater.plan.planner import make_plan

__all__ = [
    "Aggregate",
    "Catalog",
    "CombinedPlan",
    "Kind",
    "Part",
    "Path",
    "Plan",
    "Shape",
    "Stream",
    "explain",
    "explain_combined",
    "explain_query",
    "explain_standing",
    "is_combined",
    "make_combined_plan",
    "make_plan",
    "plan_query_text",
]
