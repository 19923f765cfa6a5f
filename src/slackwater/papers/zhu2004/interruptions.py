"""Fig. 8: the error of answers while streams are silent."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from slackwater.kernel.standing.options import EvaluatorOptions
from slackwater.kernel.standing.queries import QuerySet
from slackwater.papers.reproduction import Claim, Report
from slackwater.papers.zhu2004 import data
from slackwater.papers.zhu2004.charts import axes_of, save
from slackwater.papers.zhu2004.precision import OF, QUERIES
from slackwater.sim import standing

Floats = NDArray[np.float64]

LASTING_TICKS = 30
CONFIDENCE = 0.9
REPEATS = 2


def interrupted_answers(name: str, silent: int) -> tuple[Floats, Floats, Floats]:
    """Ticks of silence, error and ε_intr of every answer given while ``silent`` of its nine streams were silent."""
    table = data.streams()[name]
    weights = standing.average_queries(data.STREAMS, OF, QUERIES)
    queries = QuerySet.of(np.arange(QUERIES), weights, 0.5, CONFIDENCE)
    options = EvaluatorOptions(while_interrupted=table.period_ms)
    found: list[standing.InterruptedAnswer] = []
    for seed in range(REPEATS):
        hidden = standing.hide(table, silent, LASTING_TICKS * table.period_ms, seed)
        found += standing.run_standing(hidden, queries, options, full=table, seed=seed).interrupted_answers
    longest_ms = (LASTING_TICKS + 1) * table.period_ms
    used = [answer for answer in found if answer.silent == silent and answer.elapsed_ms <= longest_ms]
    elapsed = np.array([answer.elapsed_ms for answer in used]) / table.period_ms
    return elapsed, np.array([answer.error for answer in used]), np.array([answer.error_bound for answer in used])


def figure_8(folder: Path, report: Report) -> list[Claim]:
    """The error of averages of nine with two and three streams silent for up to thirty ticks."""
    names = [name for name in data.streams() if name in ("synthetic", "shares")]
    figure, axes = axes_of(len(names), 1)
    claims = []
    for column, name in enumerate(names):
        errors = {}
        for at, silent in enumerate((2, 3)):
            report((2 * column + at) / (2 * len(names)), f"{silent} silent, {name}")
            elapsed, error, error_bound = interrupted_answers(name, silent)
            ticks = np.arange(5, LASTING_TICKS + 1, 5)
            means = [float(error[(elapsed > tick - 5) & (elapsed <= tick)].mean()) for tick in ticks]
            axes[0][column].plot(ticks, means, "o-", label=f"{silent} silent")
            errors[silent] = (means, float(np.mean(error <= error_bound)))
        axes[0][column].set(title=name, xlabel="ticks of silence", ylabel="mean error")
        axes[0][column].legend()
        two, three = errors[2], errors[3]
        claims.append(
            Claim(
                "8",
                "the error grows with the silence, and with the number of silent streams",
                f"mean error at 5 and 30 ticks: two silent {two[0][0]:.3g}, {two[0][-1]:.3g}; "
                f"three {three[0][0]:.3g}, {three[0][-1]:.3g}; inside ε_intr {two[1]:.1%}, {three[1]:.1%}",
                two[0][-1] > two[0][0] and three[0][-1] > three[0][0] and three[0][-1] > two[0][-1],
                f"avg of nine, {name}, p = 0.9",
            )
        )
    save(figure, folder / "figure-8.png")
    return claims
