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
        "Eq. (16) follows from Eq. (15), so a is free: the paper's a = −0.8 is ctrl, a = −1 is ctrl-integrating",
        "u and v are rows/s; BASELINE's u counts rows per period and is divided by T",
        "queue shedder: L_s = L_i − L_a within [0, L_q + L_i]; arriving rows are shed first, then waiting rows at "
        "random positions (shedding from the whole queue alike would keep the delay below its target)",
        "f_out in v = u + f_out is H/c; where v cannot be realised, u(k−1) is what was realised (anti-windup)",
        "β is the shape of a bounded Pareto distribution; peak (800/s) and mean (250/s) do not depend on it; a rate "
        "lasts 4 s",
        "'Web' is a sum of on/off sources with Pareto times (mean 250/s); the paper's packet trace is not available",
        "the text does not give the heights of the cost events (Fig. 14); here they are 2×, 4× and 2.5× the base",
        "the cost of rows varies with a coefficient of variation of 0.5; delays count until the queue is empty",
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
