"""Zhu & Ravishankar 2004: deferring the evaluation of standing aggregates over streams."""

from slackwater.papers.reproduction import Paper
from slackwater.papers.zhu2004 import caution, interruptions, precision, scalability

PAPER = Paper(
    key="zhu2004",
    citation=(
        "S. Zhu, C. Ravishankar: A Scalable Approach to Approximating Aggregate Queries over Intermittent Streams, 2004"
    ),
    readings=(
        "hit rate: at the instant of re-evaluation the old answer was still within its bound; fidelity: the share of "
        "ticks at which the held answer was. Under exact Brownian motion the first is p and the second is higher",
        "evaluation happens at the last tick that is not after the deadline; the maximum's buffer covers the window",
        "no answer stands longer than the time that the estimates look back on; intervals are at least one tick",
        "the paper's data (TAO temperatures, share prices of 2001) are not to be had: synthetic Brownian motion "
        "always, shares of 2018 and Beijing weather (hourly, first year) where ../shared/data is there",
        "Fig. 7: the paper's costs (average 0.1 ms, maximum 0.53 ms, next time 0.37 ms) put the naive limit of 3,000 "
        "queries at one tick a second; half averages, half maxima",
        "ε_intr: z·σ·√t of each silent stream, combined as the root of the sum of squares; the paper's plain sum is an "
        "option",
    ),
    experiments={
        "table-2": precision.table_2,
        "5": precision.figure_5,
        "6": precision.figure_6,
        "7": scalability.figure_7,
        "8": interruptions.figure_8,
        "covariance": precision.covariance,
        "caution": caution.caution,
    },
)
