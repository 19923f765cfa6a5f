"""Kim, Kim and Kim, "Adaptive disorder control in data stream processing", Computing and Informatics 31 (2012)."""

from slackwater.papers.kim2012.figures import figure_5, figure_6, figure_7
from slackwater.papers.kim2012.variants import appendix, in_seconds
from slackwater.papers.reproduction import Paper

PAPER = Paper(
    "kim2012",
    "H. G. Kim, C. Kim, M. H. Kim: Adaptive Disorder Control in Data Stream Processing. Comput. Inform. 31, 2012",
    (
        "μ and σ are milliseconds, as the paper names no unit; `--figure seconds` reads them as seconds",
        "negative normal delays are kept, and rows are in the order of their arrivals",
        "W counts rows; m2 is the largest delay in the W rows after m1; a larger delay replaces m at once",
        "P_e = 1 000, P_s = 10, M = 100 (the paper only says predefined); Eq. (11) throughout, no fallback at 0.1 %",
        "the first heartbeat comes with the first estimate, after 30 samples",
        "buffer size: accepted rows above the heartbeat, averaged over arrivals",
    ),
    {"5": figure_5, "6": figure_6, "7": figure_7, "seconds": in_seconds, "appendix": appendix},
)
