"""What a person has spent over all who ask: a ledger that spends before it sends."""

from sidelight.ledger.ledger import Ledger as Ledger
from sidelight.ledger.levels import Levels as Levels, published_cost as published_cost
from sidelight.ledger.limits import Limit as Limit, Remaining as Remaining
from sidelight.ledger.limits import OverspentError as OverspentError
from sidelight.ledger.question import Charge as Charge, Question as Question, charge_for as charge_for
from sidelight.ledger.statement import Statement as Statement, read_statement as read_statement
from sidelight.ledger.store import FileStore as FileStore, Head as Head, Store as Store
from sidelight.ledger.windows import EVER as EVER, YEAR as YEAR, Window as Window
