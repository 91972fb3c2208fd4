"""The papers' tables and figures, computed again and judged, and benchmarks of ours.

* `study`: the nouns (`Study`, `Work`, `StudyResult`, `Verdict`, `Drawing`); `register`: every study by name.
* `runner` computes works in processes, `cache` keeps them, `outputs` and `pages` write what they found.
* `cpl`, `pdp`, `corr_rr`, `clldp`, `reconstruction`: a folder a paper, with its records, computation,
  drawings and verdicts; `ours`: benchmarks that no paper has.
* `benchmarks`: both benchmarks of paper CPL for any analyser and any mechanism.
* `tables` and `figures`: what several papers share, where tables lie and how figures look.
"""

from sidelight.foundation.modules import attach

__getattr__, __dir__, __all__ = attach(__name__, __file__)
