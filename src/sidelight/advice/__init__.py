"""Advice before collecting: the error to expect of each protocol, and which one to use."""

from sidelight.advice.advice import Advice as Advice, advise as advise, choose_protocol as choose_protocol
from sidelight.advice.rounds import RoundsAdvice as RoundsAdvice, advise_rounds as advise_rounds
from sidelight.advice.pairs import PairAdvice as PairAdvice, PairOption as PairOption
from sidelight.advice.pairs import advise_pairs as advise_pairs
