"""Kim, Kang and Kim, "Efficient window processing over disordered data streams", IEICE Trans. Inf. & Syst. (2010)."""

from slackwater.papers.kim2010.figures import figure_3, figure_4
from slackwater.papers.reproduction import Paper

PAPER = Paper(
    "kim2010",
    "H.-G. Kim, W.-L. Kang, M.-H. Kim: Efficient Window Processing over Disordered Data Streams. IEICE E93-D, 2010",
    (
        "the mean is over the latest 100 rows; with a mean over all rows the heartbeat would not move",
        "the paper names the parameters of its generator but not their values; here: 1 000 rows per second, "
        "half-normal disorder of 50 ms, at most 250 ms",
        "DRATIO 0% is best effort: no offset, no promise",
        "the offset is updated every second: forward by 1 % of the largest distance; back by 10 % if more rows than "
        "allowed were dropped since the last update or in total (the paper gives no step)",
        "the existing method waits for the largest delay seen so far",
    ),
    {"3": figure_3, "4": figure_4},
)
