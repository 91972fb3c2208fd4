"""Belief: a joint distribution of the attributes, or of all pairs of them, and where it came from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sidelight.belief.tree import Tree
from sidelight.foundation.arrays import Array, Positions, Whole, offsets
from sidelight.foundation.errors import InputError, check_choice, check_is, check_number, check_whole, invalid
from sidelight.foundation.files import file_name
from sidelight.foundation.html import html_table
from sidelight.schema import Schema, axes_schema
from sidelight.sources import Counts, Records, Table
from sidelight.sources.reader import as_table

if TYPE_CHECKING:
    from sidelight.belief.credal import Credal
    from sidelight.belief.population import Population
    from sidelight.belief.views import SecretView

BeliefKind = Literal["joint", "pairwise", "tree", "population"]
LARGEST_RECORDS = 1 << 22
_LEAST_SHARE = 1e-312
"""Below this probability, doubles keep fewer than ten digits."""
_LEAST_SMOOTHING = 1e-200
"""Spread over any table that fits in memory, this much still leaves every cell a usable probability."""


@dataclass(frozen=True, eq=False)
class Belief:
    """A distribution of the attributes.

    Make one with `from_data`, `from_counts`, `from_joint` or `from_tree`. Smoothing adds records spread
    evenly over all combinations of values, so every table is a marginal of one joint distribution. A tree or
    a population learnt from data is a model of them: all tables are its own, even where the data disagree.

    Attributes:
        schema: the attributes.
        kind: "joint" (everything is known), "pairwise" (only pairs are), "tree" (everything follows from
            the edges of a tree) or "population" (what the records let someone know of everybody else).
        blocks: (values, values) weights of all pairs, block (i, j) for attributes i and j; the diagonal
            blocks hold the marginals. Those of a tree or population are its own and include the smoothing.
        records: the distinct records of a joint belief.
        sample_size: how many records it was estimated from; None if it was given by hand.
        smoothing: how many evenly spread records were added.
        source: where it came from, in words.
        is_model: whether it is a model of the table's own distribution.
        tree: the tree of a tree belief.
        population: the mixture of models of a population belief.
    """

    schema: Schema
    kind: BeliefKind
    blocks: Array
    records: Records | None
    sample_size: int | None
    smoothing: float
    source: str
    is_model: bool = False
    tree: Tree | None = None
    population: Population | None = None

    @classmethod
    def from_data(
        cls,
        table: Table | object,
        kind: Literal["auto"] | BeliefKind = "auto",
        *,
        smoothing: float = 0.0,
        seed: int = 0,
    ) -> Belief:
        """Take the table's own distribution, or learn a model from it.

        Args:
            table: the rows: a table, or what `read` makes one of by its own rules, as a file or a DataFrame.
            kind: "joint", "pairwise", "tree" or "population" (models), or "auto": joint as long as the
                distinct records fit in memory, else pairwise.
            smoothing: how many evenly spread records to add.
            seed: of a population, which is fitted to a sample of the rows and starts at random. The same
                table and seed give the same belief; it is a model, and its coins protect nobody.
        """
        check_choice("kind", kind, ("auto", *get_args(BeliefKind)))
        amount = _check_smoothing(smoothing)
        table = as_table(table)
        source = file_name(table.source.label)
        if kind in ("auto", "joint"):
            records = table.records(LARGEST_RECORDS)
            if records is not None:
                return cls._of_records(records, table.rows, amount, source)
            if kind == "joint":
                raise InputError(
                    f"{source} has more than {LARGEST_RECORDS} distinct records, too many for a joint "
                    "belief; use kind='pairwise', fewer attributes or coarser bins."
                )
        if kind == "population":
            from sidelight.belief.population import Population, sampled_rows

            seed = check_whole("seed", seed, at_least=0)
            fitted = Population.fit(table.schema, sampled_rows(table, seed), seed)
            return cls._of_population(fitted, table.rows, amount, source)
        blocks = _assemble(table.schema, table.pair_counts())
        pairs = cls(table.schema, "pairwise", blocks, None, table.rows, amount, source)
        return cls.tree_of(pairs) if kind == "tree" else pairs

    @classmethod
    def from_counts(cls, *given: Any, smoothing: float = 0.0, source: str = "counts") -> Belief:
        """Take counts: one table over all attributes (joint), or one for every pair (pairwise).

        Args:
            *given: `Counts`, one or several; or an array of counts and its schema, or the names of its axes.
            smoothing: how many evenly spread records to add.
            source: where they came from, in words.

        >>> Belief.from_counts([[3, 2], [2, 3]], ["a", "b"]).sample_size
        10
        """
        amount = _check_smoothing(smoothing)
        counts = _count_tables(given)
        for part in counts:
            _check_weights("counts", part.cells)
        if len(counts) == 1:
            return cls._of_cells(counts[0].schema, counts[0].cells, counts[0].total, amount, source)
        attributes = {attribute.name: attribute for part in counts for attribute in part.schema}
        schema = Schema(tuple(attributes.values()))
        return cls(schema, "pairwise", _assemble(schema, counts), None, counts[0].total, amount, source)

    @classmethod
    def from_joint(
        cls, cells: ArrayLike, schema: Schema | Sequence[str], *, source: str = "by hand"
    ) -> Belief:
        """Take a joint distribution: an array of probabilities with one axis for each attribute.

        One that is not 0 must be at least 1e-312: of less, doubles keep too few digits for a figure.

        >>> Belief.from_joint([[0.3, 0.2], [0.2, 0.3]], ["a", "b"]).conditional("b", given="a")
        array([[0.6, 0.4],
               [0.4, 0.6]])
        """
        array = _numbers("cells", cells)
        _check_weights("cells", array)
        if abs((total := float(array.sum())) - 1) > 1e-9:
            raise invalid("cells", "probabilities that sum to 1", total, "Use from_counts for counts.")
        least = float(array[array > 0].min())
        if least < _LEAST_SHARE:
            raise invalid("cells", f"0 or at least {_LEAST_SHARE:g}, where doubles end", least)
        return cls._of_cells(axes_schema(schema, array.shape), array, None, 0.0, source)

    @classmethod
    def from_tree(cls, tree: Tree, *, source: str = "by hand") -> Belief:
        """Take a tree, made by `Tree.from_pairs` or `Tree.from_conditionals`, as the joint itself."""
        check_is("tree", tree, Tree, "Tree.from_pairs makes one; Belief.tree_of learns one.")
        return cls(tree.schema, "tree", tree.blocks(), None, None, 0.0, source, tree=tree)

    @classmethod
    def tree_of(cls, belief: Belief) -> Belief:
        """Learn a tree from the pairs of another belief (Chow and Liu 1968): a model of it.

        It keeps the strongest pairs exactly and lets every other pair follow from them.
        """
        check_belief("belief", belief)
        if belief.tree is not None:
            return belief
        tree = Tree.learn(belief.schema, belief.pair_probabilities())
        blocks = tree.blocks() * (belief.weight + belief.smoothing)
        source = f"a tree learnt from {belief.source}"
        return replace(
            belief, kind="tree", blocks=blocks, records=None, source=source, is_model=True, tree=tree
        )

    @classmethod
    def population_of(cls, belief: Belief, *, seed: int = 0) -> Belief:
        """Learn a population from the records of a joint belief: a model of everybody they were drawn from.

        See `belief.Population` for how; the same belief and seed give the same model.
        """
        from sidelight.belief.population import Population, drawn_rows

        check_belief("belief", belief)
        if belief.population is not None:
            return belief
        records = belief.records
        if records is None or belief.sample_size is None or (records.weights % 1).any():
            what = f"a {belief.kind} belief" if records is None else "a distribution without counts"
            raise InputError(
                f"a population is learnt from the records of a sample, which {what} has not; use "
                "Belief.from_data(table, kind='population') or a joint belief of counts."
            )
        seed = check_whole("seed", seed, at_least=0)
        fitted = Population.fit(belief.schema, drawn_rows(records, seed), seed)
        return cls._of_population(fitted, belief.sample_size, belief.smoothing, belief.source)

    @classmethod
    def _of_population(cls, fitted: Population, sample_size: int, smoothing: float, source: str) -> Belief:
        model = fitted.smoothed(smoothing / (sample_size + smoothing)) if smoothing else fitted
        blocks = model.pair_tables() * (sample_size + smoothing)
        told = f"a population learnt from {source}, {_told_gain(model)}"
        return cls(
            model.schema, "population", blocks, None, sample_size, smoothing, told,
            is_model=True, population=model,
        )  # fmt: skip

    @classmethod
    def _of_cells(
        cls, schema: Schema, cells: NDArray[Any], sample_size: int | None, smoothing: float, source: str
    ) -> Belief:
        if cells.shape != schema.sizes:
            raise invalid("cells", f"an array of the shape {schema.sizes}", cells.shape)
        codes = np.argwhere(cells > 0).astype(np.uint16)
        records = Records(schema, codes, cells[cells > 0].astype(np.float64))
        return cls._of_records(records, sample_size, smoothing, source)

    @classmethod
    def from_records(cls, records: Records, *, smoothing: float = 0.0, source: str = "records") -> Belief:
        """Take distinct records and how often each occurs; those that never do are left out."""
        amount = _check_smoothing(smoothing)
        _check_weights("records", records.weights)
        if not (seen := records.weights > 0).all():
            records = Records(records.schema, records.codes[seen], records.weights[seen])
        return cls._of_records(records, round(records.total), amount, source)

    @classmethod
    def _of_records(cls, records: Records, sample_size: int | None, smoothing: float, source: str) -> Belief:
        return cls(records.schema, "joint", records.pair_tables(), records, sample_size, smoothing, source)

    @cached_property
    def offsets(self) -> Positions:
        """Where each attribute's values start in `blocks`; last, the number of all values."""
        return offsets(self.schema.sizes)

    @cached_property
    def weight(self) -> float:
        """The weight of all records, as in `blocks`."""
        first = slice(0, self.offsets[1])
        return float(np.trace(self.blocks[first, first]))

    def joint(self, names: Sequence[str]) -> Array:
        """Return the joint probabilities of the named attributes, one axis for each."""
        if not names or len(set(names)) != len(names):
            raise invalid("names", "different attributes, at least one", list(names))
        if len(names) <= 2:
            pair = self.pair_weights(names[0], names[-1])
            cells = np.array(pair if len(names) == 2 else np.diagonal(pair))
        elif self.tree is not None:
            return self.tree.joint(names)
        elif self.population is not None:
            return self.population.joint(names)
        elif self.records is not None:
            cells = self.records.cells(names)
        else:
            several = f"{len(names)} attributes"
            raise InputError(f"a pairwise belief knows no joint of {several}; use kind='joint'.")
        # In place: large tables take longer to be made than to be filled.
        cells += self._unmixed / cells.size
        cells /= self.weight + self._unmixed
        return cells

    @property
    def knows_joints(self) -> bool:
        """Whether it knows the joint of any few attributes, and not of pairs alone."""
        return self.kind != "pairwise"

    def pair_probabilities(self) -> Array:
        """Return the probabilities of all pairs, smoothing included, laid out as `blocks`."""
        share = np.repeat(1 / np.asarray(self.schema.sizes), self.schema.sizes)
        spread = np.outer(share, share)
        # Evenly spread records have independent attributes, and each attribute equals itself.
        for start, stop in pairwise(self.offsets):
            spread[start:stop, start:stop] = np.diag(share[start:stop])
        return np.asarray((self.blocks + self._unmixed * spread) / (self.weight + self._unmixed))

    @property
    def _unmixed(self) -> float:
        """The smoothing that `blocks` do not hold yet; a model's do, since it was learnt with it."""
        return self.smoothing if self.tree is None and self.population is None else 0.0

    @property
    def mixed(self) -> float:
        """The smoothing that `blocks` hold already."""
        return self.smoothing - self._unmixed

    def credal(self, confidence: float = 0.95) -> Credal:
        """Return all distributions that the sample leaves open at this confidence."""
        from sidelight.belief.credal import Credal

        return Credal.around(self, confidence)

    def view(self, secret: str) -> SecretView:
        """Return what it says about a secret and a whole release: its prior, people to draw, likelihoods."""
        from sidelight.belief.components import LatentClasses, RecordKernel, TreeMixture
        from sidelight.belief.views import SecretView

        self.schema.index(secret)  # refuses an unknown name with the list of those that exist
        if self.population is not None:
            # copies, so that what they keep for a secret goes with its view: wide tables have many secrets
            components = tuple(replace(component) for component in self.population.components)
            return SecretView(self.schema, secret, components, self.population.shares)
        if self.tree is not None:
            return SecretView(self.schema, secret, (TreeMixture(np.ones(1), (self.tree,)),), np.ones(1))
        if self.records is None:
            raise InputError(
                "a pairwise belief knows no whole records, so it says nothing about a whole release; use "
                "kind='joint', or a model: kind='tree' or kind='population'."
            )
        table = RecordKernel.table(self.records)
        if not self.smoothing:
            return SecretView(self.schema, secret, (table,), np.ones(1))
        shares = np.array([self.weight, self.smoothing]) / (self.weight + self.smoothing)
        return SecretView(self.schema, secret, (table, LatentClasses.even(self.schema)), shares)

    def prior(self, name: str) -> Array:
        """Return the probabilities of the attribute's values."""
        return self.joint([name])

    def conditional(self, of: str, given: str) -> Array:
        """Return Pr(of | given), one row for each value of `given`; NaN rows for values that never occur."""
        cells = self.joint([given, of])
        mass = cells.sum(axis=1, keepdims=True)
        return np.asarray(np.divide(cells, mass, out=np.full_like(cells, np.nan), where=mass > 0))

    @cached_property
    def conditionals(self) -> Array:
        """Every conditional at once, shape (values, values): block (i, j) is Pr(attribute j | attribute i).

        NaN rows stand for values that never occur; the diagonal blocks have no meaning.
        """
        sizes = np.repeat(self.schema.sizes, self.schema.sizes).astype(np.float64)
        cells = self.blocks + self._unmixed / np.outer(sizes, sizes)
        mass = (np.diagonal(self.blocks) + self._unmixed / sizes)[:, None]
        return np.asarray(np.divide(cells, mass, out=np.full_like(cells, np.nan), where=mass > 0))

    def support(self, name: str) -> Whole | None:
        """Return how many records have each value of the attribute; None for a belief given by hand.

        For a population: how many it expects of as many people.
        """
        if self.sample_size is None:
            return None
        share = self.mixed / self.schema[name].size
        return np.rint(np.diagonal(self.pair_weights(name, name)) - share).astype(np.int64)

    @cached_property
    def zero_cells(self) -> int:
        """How many cells of all pair tables were never seen (both values were, together they were not).

        For a tree: how many of its own cells are 0.
        """
        tables = (self.pair_weights(*pair) for pair in combinations(self.schema.names, 2))
        unseen = ((cells == 0) & cells.any(axis=1, keepdims=True) & cells.any(axis=0) for cells in tables)
        return sum(int(np.count_nonzero(cells)) for cells in unseen)

    def pair_weights(self, first: str, second: str) -> Array:
        """Return the block of a pair of attributes; an attribute's own weights on the diagonal."""
        i, j = self.schema.index(first), self.schema.index(second)
        at = self.offsets
        return self.blocks[at[i] : at[i + 1], at[j] : at[j + 1]]

    def __repr__(self) -> str:
        size = "by hand" if self.sample_size is None else f"from {self.sample_size} records"
        if self.population is not None:
            size += f", {_told_gain(self.population)}"
        return f"Belief({self.kind}, {len(self.schema)} attributes, {size})"

    def _repr_html_(self) -> str:
        priors = [(item, self.prior(item.name)) for item in self.schema]
        rows = [[item.name, item.size, item.values[p.argmax()], float(p.max())] for item, p in priors]
        return html_table(repr(self), ("attribute", "size", "commonest value", "its share"), rows)


def _told_gain(population: Population) -> str:
    """Return in words how much better than independence it predicts; never as -0.00."""
    return f"{round(population.gain, 2) + 0.0:.2f} nats a record above independence"


def check_belief(name: str, value: object) -> None:
    """Raise an error that names the argument unless the value is a belief."""
    check_is(name, value, Belief, "Belief.from_data makes one from a table.")


def _count_tables(given: Sequence[Any]) -> tuple[Counts, ...]:
    """Return the tables of counts that were given, or the one that an array and its names make."""
    if not given:
        raise InputError("from_counts needs at least one count table, got none.")
    if all(isinstance(part, Counts) for part in given):
        return tuple(given)
    if len(given) != 2:
        kinds = ", ".join(type(part).__name__ for part in given)
        raise invalid("given", "`Counts`, or an array of counts and the names of its axes", kinds)
    cells = _numbers("cells", given[0])
    if not np.array_equal(cells, np.floor(cells)):
        raise InputError("`cells` must be whole numbers, being counts; use from_joint for probabilities.")
    _check_weights("cells", cells)
    return (Counts(axes_schema(given[1], cells.shape), cells.astype(np.int64)),)


def _numbers(name: str, cells: ArrayLike) -> Array:
    """Return cells as an array of numbers, or raise an error that names the argument."""
    try:
        return np.asarray(cells, dtype=np.float64)
    except (TypeError, ValueError):
        fix = "Give all rows the same length."
        raise invalid(name, "numbers with one axis for each attribute", cells, fix) from None


def _check_smoothing(smoothing: object) -> float:
    """Return how many records to add; an amount too small for doubles once it is spread is refused."""
    amount = check_number("smoothing", smoothing, at_least=0)
    if 0 < amount < _LEAST_SMOOTHING:
        raise invalid("smoothing", f"0 or at least {_LEAST_SMOOTHING:g}", smoothing)
    return amount


def _check_weights(name: str, cells: NDArray[Any]) -> None:
    if cells.ndim == 0 or cells.size == 0:
        raise invalid(name, "an array with one axis for each attribute", cells.shape)
    if not np.all(np.isfinite(cells)) or cells.min() < 0:
        raise InputError(f"`{name}` must be finite and at least 0 everywhere.")
    if cells.sum() <= 0:
        raise InputError(f"`{name}` must not all be 0.")


def _assemble(schema: Schema, counts: Sequence[Counts]) -> Array:
    """Put the tables of all pairs into one block matrix, after checking that they belong together."""
    at = offsets(schema.sizes)
    blocks = np.full((at[-1], at[-1]), np.nan)
    for part in counts:
        if len(part.schema) != 2:
            raise InputError("several count tables must each be of two attributes, one for every pair.")
        i, j = (schema.index(name) for name in part.schema.names)
        if schema.select(part.schema.names) != part.schema:
            raise InputError(f"the tables of {' and '.join(part.schema.names)} disagree about their values.")
        rows, columns = slice(at[i], at[i + 1]), slice(at[j], at[j + 1])
        blocks[rows, columns] = part.cells
        blocks[columns, rows] = part.cells.T
        for span, marginal in ((rows, part.cells.sum(axis=1)), (columns, part.cells.sum(axis=0))):
            known = np.diagonal(blocks[span, span])
            if not np.isnan(known[0]) and not np.array_equal(known, marginal):
                raise InputError(
                    f"the table of {' and '.join(part.schema.names)} has other totals than the tables "
                    "before it; all pairs must count the same records."
                )
            blocks[span, span] = np.diag(marginal)
    if np.isnan(blocks).any():
        raise InputError("a pairwise belief needs the counts of every pair of its attributes.")
    return blocks
