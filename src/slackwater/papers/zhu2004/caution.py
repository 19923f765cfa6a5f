"""Why the printed model hits more often than its confidence: the effects of ticks, σ̂ and μ̂ under Brownian motion."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from scipy.special import ndtr

from slackwater.control.deferral.model import deferral
from slackwater.papers.reproduction import Claim, Report
from slackwater.papers.zhu2004.precision import CONFIDENCES, OF

SIGMAS = (7.0, 8.0, 10.0)
DRAWS = 20_000


def hit_rates(k: int, *, ticks: bool, diffusion: bool, drift: bool) -> list[float]:
    """The hit rate of averages of nine at each confidence, as a mean over the bounds.

    Estimates are drawn from their own distributions, and the true spread at the deadline gives the probability of a
    hit, so that no paths are simulated. The average has no drift and unit diffusion.

    :param ticks: evaluate only at ticks.
    :param diffusion: estimate the diffusion; otherwise it is known.
    :param drift: estimate the drift; otherwise it is known.
    """
    draw = np.random.default_rng(2004)
    mu = draw.standard_normal(DRAWS) / np.sqrt(k - 1)  # Zhu 2004, Eq. (15)
    sigma = np.sqrt(draw.chisquare(k - 2, (DRAWS, OF)).mean(axis=1) / (k - 2))  # Zhu 2004, Eq. (16)
    one = np.ones(DRAWS)
    rates = []
    for confidence in CONFIDENCES:
        hits = []
        for bound in SIGMAS:
            wait = deferral(bound * one, mu if drift else 0.0 * one, sigma if diffusion else one, confidence * one)
            wait = np.minimum(wait, k - 1.0)
            wait = np.maximum(np.floor(wait), 1.0) if ticks else wait
            hits.append(float(np.mean(2.0 * ndtr(bound / np.sqrt(wait)) - 1.0)))
        rates.append(float(np.mean(hits)))
    return rates


def caution(folder: Path, report: Report) -> list[Claim]:
    """Replace known quantities by estimates, one at a time."""
    cases = [
        ("all known, at any time", 100, False, False, False),
        ("all known, at ticks", 100, True, False, False),
        ("σ estimated, at ticks", 100, True, True, False),
        ("μ estimated, at any time", 100, False, False, True),
        ("both estimated, at ticks", 100, True, True, True),
        ("both estimated, at ticks", 1000, True, True, True),
    ]
    claims = []
    for at, (label, k, ticks, diffusion, drift) in enumerate(cases):
        report(at / len(cases), label)
        rates = hit_rates(k, ticks=ticks, diffusion=diffusion, drift=drift)
        claims.append(
            Claim(
                "caution",
                "the hit rate is the confidence: 95 / 90 / 85",
                " / ".join(f"{100 * rate:.1f}" for rate in rates),
                all(abs(rate - confidence) <= 0.01 for rate, confidence in zip(rates, CONFIDENCES, strict=True)),
                f"{label}; k = {k}; Eq. (7) as printed, bounds of 7, 8, 10 σ",
            )
        )
    return claims
