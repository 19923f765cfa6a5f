"""The experiments of Zhu & Ravishankar 2004: deferred evaluation of standing aggregates over streams."""

from slackwater.papers.reproduction import Paper
from slackwater.papers.zhu2004 import caution, interruptions, precision, scalability

PAPER = Paper(
    key="zhu2004",
    citation=(
        "S. Zhu, C. Ravishankar: A Scalable Approach to Approximating Aggregate Queries over Intermittent Streams, 2004"
    ),
    readings=(
        "hit rate: the share of re-evaluations that find the old answer within its bound; fidelity: the share of ticks "
        "at which the answer is within its bound. Under exact Brownian motion the hit rate is p and fidelity is higher",
        "a query is evaluated at the last tick that is not after its deadline; the maximum's buffer covers the window",
        "no deferral is longer than the time that the estimates look back on, or shorter than one tick",
        "the paper's data (TAO temperatures, share prices of 2001) are not available. Synthetic Brownian motion is "
        "always used; shares of 2018 and Beijing weather (hourly, first year) if SLACKWATER_DATA names their folder",
        "Fig. 7: with the paper's costs (average 0.1 ms, maximum 0.53 ms, next time 0.37 ms), half averages and half "
        "maxima, the naive limit of 3,000 queries means one tick per second",
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
