"""Leakage over time: reports that repeat, values that change, and people who can be followed."""

from sidelight.leakage.over_time.chain import Chain as Chain, at_round as at_round
from sidelight.leakage.over_time.chain_files import read_chain as read_chain
from sidelight.leakage.over_time.changing import OverTime as OverTime
from sidelight.leakage.over_time.changing import leakage_over_time as leakage_over_time
from sidelight.leakage.over_time.changing import leakage_over_time_at as leakage_over_time_at
from sidelight.leakage.over_time.links import Linking as Linking, found_among as found_among
from sidelight.leakage.over_time.links import linking as linking
from sidelight.leakage.over_time.paths import path_rows as path_rows
from sidelight.leakage.over_time.recursion import Recursion as Recursion, accumulated as accumulated
from sidelight.leakage.over_time.recursion import chain_limit as chain_limit
from sidelight.leakage.over_time.recursion import chain_recursion as chain_recursion, unlimited as unlimited
from sidelight.leakage.over_time.repeating import Repetition as Repetition, repetitions as repetitions
