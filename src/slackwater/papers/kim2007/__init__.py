"""Kim, Kim and Kim, "Adaptive disorder control in continuous data streams" (2007)."""

from slackwater.papers.kim2007.figures import figure_5
from slackwater.papers.reproduction import Paper

PAPER = Paper(
    "kim2007",
    "H. G. Kim, C. Kim, M. H. Kim: Adaptive Disorder Control in Continuous Data Streams. 2007",
    (
        "20 sensors, a row a second each; the paper took its delays from TinyDB and prints none: "
        "normal, σ = 0.2, 1 and 2 s, μ = 2.5 σ, 100 000 rows",
        "a row exactly at the punctuation is on time, as in the later papers (this one drops it)",
        "VSeq holds 30 rows or more and is resized at every row, as in Fig. 3",
        "Fig. 4: μ_t and σ_t are over the timestamps in VSeq; N = 30; the printed σ_t·z·θ is no number of rows, "
        "so it is run as printed (in seconds) and with σ_t·z/θ",
        "buffer size: accepted rows above the heartbeat, averaged over arrivals; waiting time: clock − heartbeat",
    ),
    {"5": figure_5},
)
