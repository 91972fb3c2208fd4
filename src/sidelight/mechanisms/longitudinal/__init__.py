"""Reports sent again and again: a response that is kept, and fresh noise on top of it each time."""

from sidelight.mechanisms.longitudinal.batches import bucket_steps as bucket_steps
from sidelight.mechanisms.longitudinal.batches import has_own_memos as has_own_memos
from sidelight.mechanisms.longitudinal.batches import instant_budget as instant_budget
from sidelight.mechanisms.longitudinal.batches import kept_oracle as kept_oracle
from sidelight.mechanisms.longitudinal.batches import memory_steps as memory_steps
from sidelight.mechanisms.longitudinal.batches import same_memos as same_memos
from sidelight.mechanisms.longitudinal.batches import seen_changes as seen_changes
from sidelight.mechanisms.longitudinal.batches import unlimited_budget as unlimited_budget
from sidelight.mechanisms.longitudinal.crowd import crowd_memos as crowd_memos
from sidelight.mechanisms.longitudinal.crowd import memo_mechanism as memo_mechanism
from sidelight.mechanisms.longitudinal.crowd import sent_again as sent_again
from sidelight.mechanisms.longitudinal.crowd import memo_parameters as memo_parameters
from sidelight.mechanisms.longitudinal.crowd import shared_rates as shared_rates
from sidelight.mechanisms.longitudinal.device import Device as Device, recalled_of_all as recalled_of_all
from sidelight.mechanisms.longitudinal.device import simulate_rounds as simulate_rounds
from sidelight.mechanisms.longitudinal.memory import KeyedMemory as KeyedMemory, Memory as Memory
from sidelight.mechanisms.longitudinal.memory import StoredMemory as StoredMemory, Topic as Topic
from sidelight.mechanisms.longitudinal.oracle import Longitudinal as Longitudinal, Remembers as Remembers
from sidelight.mechanisms.longitudinal.rounds import Rounds as Rounds
from sidelight.mechanisms.longitudinal.sequences import change_budget as change_budget
from sidelight.mechanisms.longitudinal.sequences import epochs_budget as epochs_budget
from sidelight.mechanisms.longitudinal.sequences import pattern_budget as pattern_budget
from sidelight.mechanisms.longitudinal.sequences import sequence_channel as sequence_channel
from sidelight.mechanisms.longitudinal.sequences import sequence_law as sequence_law
from sidelight.mechanisms.longitudinal.sequences import sequence_logs as sequence_logs
from sidelight.mechanisms.longitudinal.sequences import steps_law as steps_law
