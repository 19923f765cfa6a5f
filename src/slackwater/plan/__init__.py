"""Query → checked plan: contradictions are refused here, before Spark is touched."""

from slackwater.plan.aggregates import Aggregate, Part
from slackwater.plan.catalog import Catalog, Stream
from slackwater.plan.explain import explain
from slackwater.plan.plan import Kind, Path, Plan, Shape
from slackwater.plan.planner import make_plan

__all__ = ["Aggregate", "Catalog", "Kind", "Part", "Path", "Plan", "Shape", "Stream", "explain", "make_plan"]
