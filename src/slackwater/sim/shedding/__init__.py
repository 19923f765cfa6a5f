"""The laboratory of load shedding: simulated plants, inputs and costs, with the laws that also run beside Spark."""

from slackwater.sim.shedding.costs import constant_cost, eventful_cost
from slackwater.sim.shedding.inputs import pareto_rates, rows_from_rates, sinusoid_rates, step_rates, web_rates
from slackwater.sim.shedding.plant import Plant
from slackwater.sim.shedding.run import Outcome, Setup, run

__all__ = [
    "Outcome",
    "Plant",
    "Setup",
    "constant_cost",
    "eventful_cost",
    "pareto_rates",
    "rows_from_rates",
    "run",
    "sinusoid_rates",
    "step_rates",
    "web_rates",
]
