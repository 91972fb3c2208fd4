"""Asking each person for one attribute: the protocol, and what such a report says.

Which attribute is sent is drawn without a look at the record and is disclosed, so that for a value s of
the secret Pr(attribute j, report y | s) = share_j Pr_j(y | s). For two values s and s' the hockey-stick
divergence at L is the sum over j and y of max(0, share_j Pr_j(y | s) - e^L share_j Pr_j(y | s')), which is
the average of the attributes' own divergences by their shares. In the worst case the report that says most
decides, however rarely its attribute is drawn. That others are not sent protects nobody whose attribute is:
no amplification by sampling is assumed, since the drawn attribute is known.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sidelight.foundation.arrays import Array
from sidelight.foundation.errors import InputError
from sidelight.leakage.divergence import epsilon_at
from sidelight.plan import Release
from sidelight.protocols.direct import Sample
from sidelight.protocols.groups import make_group
from sidelight.schema import Schema

SAMPLED = "one report of a disclosed attribute"


def sample_of(releases: Sequence[Release]) -> Sample | None:
    """Return the protocol that draws one attribute for each person, each as likely; None if it cannot be."""
    if len(releases) < 2 or any(item.times > 1 for item in releases):
        return None
    schema = Schema(tuple(item.attribute for item in releases))
    try:
        groups = tuple(
            make_group(schema, [item.name], item.mechanism, item.epsilon, item.parameters)
            for item in releases
        )
        return Sample(schema, groups, ())
    except InputError:
        return None


def sampled_figure(laws: Sequence[Array], count: int, beyond: float, delta: float) -> float:
    """Return the leakage at delta of the report of one of `count` attributes, each as likely.

    Args:
        laws: Pr(report | value) of the attributes whose reports can be listed.
        count: how many attributes there are.
        beyond: what any of the other reports says at most; from there on they have no divergence.
        delta: the probability with which a report may say more.
    """
    if not laws:
        return beyond
    return max(epsilon_at(np.hstack(laws) / count, delta)[0], beyond)
