"""Kim, Kang and Kim, "Efficient window processing over disordered data streams", IEICE Trans. Inf. & Syst. (2010)."""

from slackwater.papers.kim2010.figures import figure_3, figure_4
from slackwater.papers.reproduction import Paper

PAPER = Paper(
    "kim2010",
    "H.-G. Kim, W.-L. Kang, M.-H. Kim: Efficient Window Processing over Disordered Data Streams. IEICE E93-D, 2010",
    (
        "the mean is taken over the latest 100 rows: over all rows ever seen the heartbeat would stand still",
        "the generator is named (rate, standard deviation and maximum of disorder) but no value is: "
        "1 000 rows a second, half-normal disorder of 50 ms, at most 250 ms",
        "DRATIO 0% is best effort: no offset, no promise",
        "the offset is renewed every second: forward by 1 % of the largest distance; back by 10 % if more rows than "
        "allowed were dropped since the last time or altogether (the paper gives no step)",
        "the existing method is the largest delay seen so far",
    ),
    {"3": figure_3, "4": figure_4},
)
