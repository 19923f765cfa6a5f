"""Tu, Liu, Prabhakar, Yao: Load Shedding in Stream Databases: A Control-Based Approach (VLDB 2006)."""

from slackwater.papers.reproduction import Paper
from slackwater.papers.tu2006.comparison import figure_12, figure_15, figure_16
from slackwater.papers.tu2006.robustness import figure_17, figure_18, figure_19
from slackwater.papers.tu2006.verification import figure_5, figure_6, figure_7

PAPER = Paper(
    key="tu2006",
    citation="Tu, Liu, Prabhakar, Yao. Load Shedding in Stream Databases: A Control-Based Approach. VLDB 2006.",
    readings=(
        "the plant is a virtual FIFO queue with H = 0.97 and a capacity of 190 rows/s, so c = H/190 = 5.105 ms",
        "Eq. (16) follows from Eq. (15): a is free; the paper's a = −0.8, and −1 as ctrl-integrating",
        "u and v are rows/s; BASELINE's u counts rows a period and is divided by T",
        "queue shedder: L_s = L_i − L_a within [0, L_q + L_i]; arriving rows go first, then waiting ones at random "
        "places (taken from everywhere alike, rows ahead keep vanishing and the delay stays below its target)",
        "f_out in v = u + f_out is H/c; u(k−1) is what was realised where v asked for the impossible (anti-windup)",
        "β is the shape of a bounded Pareto with one peak (800/s) and one mean (250/s) for all; a rate lasts 4 s",
        "'Web' is a sum of on/off sources with Pareto times (mean 250/s); the paper's packet trace is not at hand",
        "the heights of the cost events (Fig. 14) are not in the text: 2×, 4× and 2.5× the base are ours",
        "rows differ in cost with a coefficient of variation of 0.5; delays count until the queue has drained",
        "figures are sums over five seeds; Fig. 12 and 19 show both shedders, the others the queue shedder",
    ),
    experiments={
        "5": figure_5,
        "6": figure_6,
        "7": figure_7,
        "12": figure_12,
        "15": figure_15,
        "16": figure_16,
        "17": figure_17,
        "18": figure_18,
        "19": figure_19,
    },
)
