"""Kim, Kim and Kim, "Adaptive disorder control in continuous data streams" (2007)."""

from slackwater.papers.kim2007.figures import figure_5
from slackwater.papers.reproduction import Paper

PAPER = Paper(
    "kim2007",
    "H. G. Kim, C. Kim, M. H. Kim: Adaptive Disorder Control in Continuous Data Streams. 2007",
    (
        "20 sensors with one row per second each; the paper takes its delays from TinyDB and does not print them; here "
        "they are normal with σ = 0.2, 1 and 2 s and μ = 2.5 σ; 100 000 rows",
        "a row exactly at the punctuation is on time, as in the later papers (this paper drops it)",
        "VSeq holds at least 30 rows and is resized at every row, as in Fig. 3",
        "Fig. 4: μ_t and σ_t are over the timestamps in VSeq; N = 30; the printed σ_t·z·θ does not have the unit of "
        "rows, so it is run as printed (in seconds) and as σ_t·z/θ",
        "buffer size: accepted rows above the heartbeat, averaged over arrivals; waiting time: clock − heartbeat",
    ),
    {"5": figure_5},
)
