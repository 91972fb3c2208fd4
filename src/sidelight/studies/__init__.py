"""The papers' tables and figures, computed again and judged, and benchmarks of ours.

* `study`: the nouns (`Study`, `Work`, `StudyResult`, `Verdict`, `Drawing`); `register`: every study by name,
  as `studies.toml` lists it with what is published about it.
* `runner` computes works in processes, `cache` keeps them, `outputs` and `pages` write what they found,
  `long_read` the page that tells it all, `rendering` how pages look.
* `cpl`, `pdp`, `corr_rr`, `clldp`, `reconstruction`: a folder a paper, with its records, computation,
  drawings and verdicts; `ours`: benchmarks that no paper has.
* `benchmarks`: both benchmarks of paper CPL for any analyser and any mechanism.
* `figures`: how the drawings of several papers look.
"""

from sidelight.foundation.modules import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
