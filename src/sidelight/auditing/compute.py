"""Compute an audit: the leakage room's figures, put together for every secret."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from sidelight.auditing.result import Audit, SecretAudit, published_sum
from sidelight.auditing.stories import Sampling, Stories
from sidelight.auditing.suppression import suppressed
from sidelight.auditing.verdict import AdversaryName, adversary_of, check_decider
from sidelight.belief import Belief, check_belief
from sidelight.foundation.errors import InputError, check_is, check_whole
from sidelight.foundation.progress import track
from sidelight.leakage import Bound, Leakage, Synergy, average_leakage, synergy_scan
from sidelight.leakage.credal import robust_pair, robust_total
from sidelight.leakage.pair import direct_leakage, pair_matrix, secret_names
from sidelight.leakage.totals import TotalMethod, composition, total_leakage, tree_totals
from sidelight.mechanisms import Channel
from sidelight.plan import PLAN_FIX, Plan, View

_USUAL = Sampling()
_GUESSES: tuple[AdversaryName, ...] = ("guess", "model guess")
_MODELS: tuple[AdversaryName, ...] = ("model", "model guess")


def audit(
    belief: Belief, plan: Plan, secrets: Iterable[str] | None = None, *, delta: float | None = None,
    sampling: Sampling = _USUAL, method: TotalMethod = "auto", adversary: View = "report",
    model: bool = False, confidence: float | None = None, synergies: int = 0, min_support: int = 0,
    decide_by: AdversaryName | None = None,
) -> Audit:  # fmt: skip
    """Compute what a plan reveals about each secret to an adversary who holds the belief.

    A secret with a limit is judged, one without described. Figures are worst cases of all reports; with a
    delta there are also figures at delta, of who knows the population and of who knows the table.

    Args:
        belief: what the adversary knows.
        plan: what is released, and the limits.
        secrets: the attributes to protect; all of the belief's by default.
        delta: the probability, averaged over the people with a value, with which a release may say more
            than the figures at delta: 0.01 lets one person in a hundred be exposed. By default the plan's.
        sampling: how releases are drawn for them.
        method: of the upper end of the total, see `total_leakage`.
        adversary: "report" keeps whole reports, "guess" one guessed value of each.
        model: also give the total for an adversary who models the population as a tree.
        confidence: also give figures that hold together, so surely, for all that the sample leaves open.
        synergies: how many pairs of reports to name that say more together than apart.
        min_support: replace figures that rest on fewer records by what the budgets alone say.
        decide_by: for whom limits must be kept; it changes no figure. By default whom the plan names, whose
            figures are then computed, else with a delta the last of `told_adversaries`, else "report". A
            weaker one must be asked for: "guess", "model", or "model guess" for both.
    """
    check_whole("min_support", min_support, at_least=0)
    check_whole("synergies", synergies, at_least=0)
    check_belief("belief", belief)
    check_is("plan", plan, Plan, PLAN_FIX)
    chosen = plan.delta if delta is None else delta
    named = None if decide_by else plan.decide_by  # whose figures the plan asks for
    stories = None if chosen is None else Stories.of(belief, plan, chosen, sampling, named)
    decider = decide_by or named or (stories.adversaries[-1] if stories else "report")
    model = model or (named in _MODELS and not belief.is_model)
    view: View = "guess" if named in _GUESSES else adversary
    question = _Question(belief, plan, method, view, min_support, decider, stories)
    return question.audit(secrets, model=model, confidence=confidence, synergies=synergies)


@dataclass(frozen=True, eq=False)
class _Question:
    """What is asked of every secret alike; see `audit`."""

    belief: Belief
    plan: Plan
    method: TotalMethod
    view: View
    min_support: int
    decide_by: AdversaryName
    stories: Stories | None

    @cached_property
    def channels(self) -> Mapping[str, Channel]:
        """Every release as the adversary sees it."""
        return self.plan.channels(self.view)

    @cached_property
    def reports(self) -> Mapping[str, Channel]:
        """Every release as an adversary sees it who keeps whole reports."""
        return self.channels if self.view == "report" else self.plan.channels()

    def audit(
        self, secrets: Iterable[str] | None, *, model: bool, confidence: float | None, synergies: int
    ) -> Audit:
        """Answer the question for each of the secrets."""
        belief, channels = self.belief, self.channels
        names = secret_names(belief, secrets)
        for name in (*self.plan.limits, *self.plan.reasons):
            _check_known(belief, name, "has a limit for" if name in self.plan.limits else "has a reason for")
        check_plan(belief, self.plan)
        told = self.stories.adversaries if self.stories else ()
        check_decider(self.decide_by, self.view, is_model=belief.is_model, has_model=model, told=told)
        pairs = pair_matrix(belief, channels, names)
        models = tree_totals(Belief.tree_of(belief), channels, names) if model else {}
        credal = None if confidence is None else belief.credal(confidence)
        audited = {}
        for column, name in enumerate(track(names, "totals")):
            item = self._secret(name, [leakage for row in pairs if (leakage := row[column]) is not None])
            item = replace(self._told(item), model=models.get(name))
            if credal is not None:
                others = [other for other in channels if other != name]
                robust = {other: robust_pair(credal, channels[other], name, other) for other in others}
                total = robust_total(credal, channels, name)
                item = replace(item, robust=total, robust_neighbours=robust)
            audited[name] = self._suppressed(item) if self.min_support else item
        together = self._synergies(audited, synergies) if synergies else ()
        result = Audit(belief, self.plan, audited, self.min_support, self.view, confidence, together)
        if self.stories is None:
            return result
        return replace(result, delta=self.stories.delta, population=self.stories.population)

    def _secret(self, name: str, neighbours: Sequence[Leakage]) -> SecretAudit:
        """Put a secret's figures together; beside a weaker adversary's total, that of the whole report."""
        belief, channels = self.belief, self.channels
        worst_first = sorted(neighbours, key=lambda leakage: -leakage.value)
        direct = direct_leakage(belief, channels.get(name), name)
        total = total_leakage(belief, channels, name, self.method)
        who = adversary_of(self.view, is_model=belief.is_model and not total.is_exact)
        prior = belief.prior(name)
        code = int(prior.argmax())
        others = [(other, channels[other]) for other in (leakage.through[0] for leakage in worst_first)]
        return SecretAudit(
            name,
            self.plan.limit_of(name),
            direct,
            tuple(worst_first),
            total,
            published_sum(direct, worst_first),
            (belief.schema[name].values[code], float(prior[code])),
            {other: average_leakage(belief, x, name, other) for other, x in others if x.is_listable},
            adversary=who,
            whole=None if who == "report" else self._whole(name),
            decide_by=self.decide_by,
        )

    def _told(self, item: SecretAudit) -> SecretAudit:
        """Add what the release says at delta, and the worst case of a table without connections."""
        if self.stories is None:
            return item
        tables = self.stories.null_tables(item.secret)
        nulls = [total_leakage(table, self.reports, item.secret, self.method) for table in tables]
        own = direct_leakage(self.belief, self.reports.get(item.secret), item.secret)
        null = max(nulls, key=lambda leakage: leakage.lower.value, default=own)
        return replace(item, stories=self.stories.of_secret(item.secret, tables), null=null)

    def _whole(self, secret: str) -> Leakage:
        """Return the total for whoever knows the table and keeps whole reports, as far as it can be told.

        A model has the table's marginals, but says nothing sure about how its attributes go together: what
        is left is what the secret's own report reaches, and the sum of all budgets.
        """
        reports = self.reports
        if not self.belief.is_model:
            return total_leakage(self.belief, reports, secret)
        own = direct_leakage(self.belief, reports.get(secret), secret).lower
        delta = math.fsum(channel.delta for channel in reports.values())
        lower = Bound(own.value, "lower", "own report alone")
        return Leakage(secret, tuple(reports), lower, composition(reports), delta)

    def _suppressed(self, item: SecretAudit) -> SecretAudit:
        counts = self.belief.support(item.secret)
        rarest = None if counts is None else int(counts[counts > 0].min())
        return suppressed(item, self.channels, self.reports, self.min_support, rarest=rarest)

    def _synergies(self, audited: Mapping[str, SecretAudit], most: int) -> tuple[Synergy, ...]:
        """Return the pairs of reports that say more together than apart, leaving out those of few records."""
        hidden = {
            (name, leakage.through[0])
            for name, item in audited.items()
            for leakage in item.neighbours
            if leakage.upper.is_suppressed
        }
        return tuple(
            synergy
            for synergy in synergy_scan(self.belief, self.channels, list(audited), top=most)
            if synergy.excess > 0
            and (synergy.support is None or synergy.support >= self.min_support)
            and not {(synergy.secret, synergy.first), (synergy.secret, synergy.second)} & hidden
        )


def _check_known(belief: Belief, name: str, said: str) -> None:
    """Raise if what the plan says of an attribute is about one that the belief does not know."""
    if name not in belief.schema:
        known = ", ".join(belief.schema.names)
        raise InputError(f"the plan {said} {name!r}, which is not among the table's attributes: {known}.")


def check_plan(belief: Belief, plan: Plan) -> None:
    """Raise if the plan releases attributes the belief does not know, or codes them otherwise."""
    for release in plan.releases:
        _check_known(belief, release.name, "releases")
        known = belief.schema[release.name]
        given = release.attribute
        if (known.values, known.edges, known.merged) != (given.values, given.edges, given.merged):
            raise InputError(
                f"the plan and the table disagree about the values of {release.name!r} "
                f"({release.attribute.size} and {known.size}); read the table with schema=plan.schema."
            )
