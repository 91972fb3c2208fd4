"""The words of the reports, each with its meaning: the one home of the definitions.

A page explains a word where a reader meets it, and lists the words it uses at its end. The site prints all.
Words are found in the finished text of a page, so that no template has to mark them: in each section the
first use in running text becomes a link to the glossary, and heads of columns and kinds of figures explain
themselves when they are pointed at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from markupsafe import Markup


@dataclass(frozen=True)
class Term:
    """One word of the glossary.

    Attributes:
        name: the word as the glossary lists it.
        meaning: what it means, in a sentence or two.
        words: how running text and heads of columns write it; without capitals, these count as well.
        codes: how a cell of a table writes it: the name of a mechanism, or the kind of a figure.
    """

    name: str
    meaning: str
    words: tuple[str, ...] = ()
    codes: tuple[str, ...] = ()

    @property
    def key(self) -> str:
        """The word as an anchor."""
        return re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")


_MEANINGS: dict[str, tuple[str, tuple[str, ...], tuple[str, ...]]] = {
    "adversary": (
        "Whoever tries to learn a person's secret from that person's reports. What they already know about "
        "people decides how much the reports tell them.",
        ("adversary", "adversaries"), (),
    ),
    "AUC": (
        "How well an attack ranks people: the probability that someone who has the value is suspected more "
        "than someone who has not. 0.5 is a coin flip, 1 is perfect.",
        ("AUC",), (),
    ),
    "average precision": (
        "How many of those whom an attack suspects really have the value, averaged along its list from the "
        "most to the least suspected. A blind list scores the share of people who have it.",
        ("average precision",), (),
    ),
    "belief": (
        "What the adversary is taken to know before seeing any report: how often the values of the "
        "attributes occur together.",
        ("belief",), (),
    ),
    "budget": (
        "Epsilon (ε): how noisy the report of an attribute is. No answer makes a report more than e to the "
        "power ε times likelier than another answer does. A small budget is much noise: 1 allows odds to "
        "move by a factor of 2.7 at most, 3 by 20. The nominal budget was asked for; the realised one is "
        "computed from the very probabilities in use, and is never larger.",
        ("budget", "budgets", "epsilon", "nominal ε", "realised ε", "ε"), (),
    ),
    "certified": (
        "Proved: the true figure is never above this one. It may be far below.",
        ("certified",), ("certified",),
    ),
    "confidence interval": (
        "A range that was computed so that it holds the true figure in the stated share of all cases.",
        ("confidence interval", "intervals", "95 % interval"), (),
    ),
    "control": (
        "The same attacker without the release: what anyone can guess who knows the population. Only what "
        "an attack gains over its control is the fault of the release.",
        ("control",), (),
    ),
    "delta": (
        "The share of people who may be exposed beyond a figure: at a delta of 0.01 one person in a hundred, "
        "on average, without limit, or more people by a little.",
        ("delta", "if so many may be exposed"), (),
    ),
    "estimate": (
        "A figure from samples, with their error. It may err in either direction.", (), ("estimate",),
    ),
    "exact": ("The true figure for the stated belief.", ("exact",), ("exact",)),
    "GRR": (
        "Generalised randomised response: a person mostly reports the true value, and otherwise any other "
        "value with equal probability.",
        ("GRR",), ("grr",),
    ),
    "LabelDP": (
        "A protocol that randomises a label and leaves the other attributes as they are, so that these still "
        "speak about the label.",
        ("LabelDP",), (),
    ),
    "leakage": (
        "How much the reports can say about a secret beyond what everyone knew: the logarithm of the largest "
        "factor by which they move the odds of one value against another, in nats.",
        ("leakage", "leakages"), (),
    ),
    "lift": (
        "How many times as many of the most suspected people have the value as of people in general.",
        ("lift",), (),
    ),
    "limit": (
        "How much a secret may leak, as whoever made the plan decided: the largest factor on odds that is "
        "tolerated, or its logarithm.",
        ("limit", "limits"), (),
    ),
    "lower": (
        "A figure that some report really reaches. The true worst case is at least this.", (), ("lower",),
    ),
    "mean squared error": (
        "The square of how far estimates are off, on average. Its root is in the units of the estimates: "
        "0.0004 stands for 2 percentage points.",
        ("mean squared error", "mean squared errors"), (),
    ),
    "mechanism": (
        "The randomiser of one attribute: it turns a person's true value into a noisy report before it "
        "leaves that person.",
        ("mechanism", "randomiser"), (),
    ),
    "model": (
        "Exact or certified for a simplified model of the table, so no limit for the table itself.",
        (), ("model",),
    ),
    "nats": (
        "The unit of leakage and budgets: a natural logarithm of a factor on odds. 0.1 nats is a factor of "
        "1.1, 1 nat 2.7, 2 nats 7.4, 3 nats 20.",
        ("nats", "nat"), (),
    ),
    "neighbour": (
        "Another attribute whose report also speaks about the secret, because the two go together in people.",
        ("neighbour", "neighbours", "worst neighbour"), (),
    ),
    "odds": (
        "How many times likelier one possibility is than another. A fifty-fifty guess has odds of 1; odds of "
        "9 are a probability of 90 %.",
        ("odds", "odds × at most"), (),
    ),
    "OLH": (
        "Optimised local hashing: a person hashes the value into few buckets and reports the bucket by "
        "randomised response. BLH is the same with two buckets.",
        ("OLH", "BLH"), ("olh", "blh"),
    ),
    "OUE": (
        "Optimised unary encoding: a person reports one bit for each value, and each bit may be flipped; the "
        "odds of flipping are set for small errors. SUE and RAPPOR flip zeros and ones alike.",
        ("OUE", "SUE", "RAPPOR"), ("oue", "sue", "rappor"),
    ),
    "population": (
        "People like those of the table, whoever they are. What the population says about everyone is known "
        "before anything is released, and is no leak.",
        ("population",), (),
    ),
    "published": (
        "A formula from a paper, shown for comparison. It is neither an upper nor a lower limit.",
        ("published sum",), ("published",),
    ),
    "sampled": (
        "From releases that were drawn at random: not below the true figure, except with a small, stated "
        "probability over the computer's own coin flips.",
        ("sampled",), ("sampled",),
    ),
    "saturation": (
        "What a neighbour's true value would say about the secret: no budget, however large, says more.",
        ("saturates", "saturation"), (),
    ),
    "secret": (
        "An attribute that people would not want to be inferred, whether it is collected or not.",
        ("secret", "secrets"), (),
    ),
    "standard error": (
        "How far an estimate typically is from the truth because of the noise.", ("standard error",), (),
    ),
    "SS": (
        "Subset selection: a person reports a small set of values that holds the true one more often than "
        "any other.",
        ("subset selection",), ("ss",),
    ),
    "support": (
        "How many records are behind a figure. Where there are few, it concerns few people and is itself "
        "uncertain.",
        ("support",), (),
    ),
    "without any connection": (
        "The same figure once the secret's values were shuffled among the people (the null): what is left is "
        "the secret's own report, and chance. A figure that rises no higher says nothing about how "
        "attributes go together.",
        ("without any connection", "shuffled", "null"), (),
    ),
    "witness": (
        "One combination of reports that shows a figure: evidence that it is really reached.",
        ("witness", "witness of the total"), (),
    ),
    "worst case": (
        "The most that any combination of reports can say to someone who knows the whole table, however "
        "unlikely that combination is.",
        ("worst case", "worst cases"), (),
    ),
}  # fmt: skip

GLOSSARY: tuple[Term, ...] = tuple(
    sorted((Term(name, *rest) for name, rest in _MEANINGS.items()), key=lambda term: term.name.lower())
)
"""Every word that the reports explain, in alphabetical order."""

_EXPLAINED = ("p", "li", "dt", "dd")
"""The elements whose running text is explained."""
_PLAIN = ("a", "bdi", "button", "h1", "h2", "h3", "h4", "pre", "svg", "summary", "table", "script", "label")
"""The elements in which a word stays as it is: names and values of the data, titles, links."""
_TOKEN = re.compile(r"(<[^>]*>)")
_TAG = re.compile(r"<(/?)([a-zA-Z0-9]+)([^>]*)>")


@cache
def _word_pattern() -> re.Pattern[str]:
    """Return the pattern of all words; one with a capital, such as GRR, is found only so."""
    words = sorted((word for term in GLOSSARY for word in term.words), key=len, reverse=True)
    said = [re.escape(word) if word != word.lower() else f"(?i:{re.escape(word)})" for word in words]
    return re.compile(rf"(?<![\w-])(?:{'|'.join(said)})(?![\w-])")


@cache
def _by_word() -> dict[str, Term]:
    return {word.lower(): term for term in GLOSSARY for word in term.words}


@cache
def _by_code() -> dict[str, Term]:
    return {code: term for term in GLOSSARY for code in term.codes}


@dataclass
class _Reader:
    """Where in a page the reader is, and which words were met."""

    opened: list[tuple[str, bool]] = field(default_factory=list)  # elements, and whether words stay plain
    met: set[str] = field(default_factory=set)  # in this section
    used: set[str] = field(default_factory=set)  # on this page

    def read(self, body: str) -> Iterator[str]:
        tokens = _TOKEN.split(body)
        for place, token in enumerate(tokens):
            tag = _TAG.fullmatch(token) if place % 2 else None
            if tag is None:
                yield self._text(token)
                continue
            ending, name, rest = tag.groups()
            self._enter(name, bool(ending), rest)
            yield token if ending else self._opening(token, name, rest, tokens[place + 1])

    def _enter(self, name: str, ending: bool, rest: str) -> None:
        if name in ("section", "header"):
            self.met = set()
        if name not in (*_EXPLAINED, *_PLAIN):
            return
        if not ending:
            self.opened.append((name, name in _PLAIN or 'class="eyebrow"' in rest))
            return
        places = [place for place, (opened, _) in enumerate(self.opened) if opened == name]
        if places:  # an end also closes what was left open inside
            del self.opened[places[-1] :]

    def _opening(self, token: str, name: str, rest: str, text: str) -> str:
        """Return an opening tag; a head of a column, a kind and a mechanism carry the key of their word."""
        term = None
        if name == "th" and 'scope="col"' in rest:
            found = _word_pattern().search(text)
            term = _by_word()[found[0].lower()] if found else None
        elif name == "td" or 'class="kind"' in rest:
            term = _by_code().get(text.strip())
        if term is None:
            return token
        self.used.add(term.key)
        return f'{token[:-1]} data-term="{term.key}">'

    def _text(self, text: str) -> str:
        if not self.opened or any(is_plain for _, is_plain in self.opened):
            return text
        return _word_pattern().sub(self._link, text)

    def _link(self, found: re.Match[str]) -> str:
        term = _by_word()[found[0].lower()]
        if term.key in self.met:
            return found[0]
        self.met.add(term.key)
        self.used.add(term.key)
        where = f'href="#term-{term.key}" data-term="{term.key}" aria-describedby="meaning-{term.key}"'
        return f'<a class="term" {where}>{found[0]}</a>'


def explained(body: str) -> tuple[Markup, list[Term]]:
    """Return a page's body with its words explained, and the words it uses.

    >>> body, used = explained("<p>Odds of 9 against <bdi>odds</bdi>.</p>")
    >>> [term.name for term in used], body.count("<a ")
    (['odds'], 1)
    """
    reader = _Reader()
    text = "".join(reader.read(str(body)))
    used = [term for term in GLOSSARY if term.key in reader.used]
    return Markup(text), used  # noqa: S704 - templates escaped it, and what was added is ours


def glossary_markdown() -> str:
    """Return the whole glossary as a page of the site."""
    said = [f"* **{term.name}**: {term.meaning}" for term in GLOSSARY]
    return "\n".join(
        ["# Glossary", "", "The words of the reports; each report explains those it uses.", "", *said]
    )
