"""The devices of many people at once: their memos from their secrets, and what two rounds have in common."""

from __future__ import annotations

import hmac
from collections.abc import Mapping, Sequence

import numpy as np

from sidelight.foundation.arrays import AnyCodes, Words
from sidelight.foundation.errors import InputError, invalid
from sidelight.mechanisms.checks import check_codes
from sidelight.mechanisms.hashing import Hashing
from sidelight.mechanisms.kept import Kept
from sidelight.mechanisms.longitudinal.device import memo_channel
from sidelight.mechanisms.longitudinal.memory import BLOCK_WORDS, Topic
from sidelight.mechanisms.longitudinal.oracle import Longitudinal
from sidelight.mechanisms.mechanism import Mechanism
from sidelight.mechanisms.reports import Reports
from sidelight.schema import Attribute


def memo_mechanism(mechanism: Mechanism) -> Kept:
    """Return the mechanism of the response that is kept, or raise where none can be."""
    if isinstance(mechanism, Longitudinal):
        return mechanism.stored
    if isinstance(mechanism, Kept):
        return mechanism
    raise InputError(
        f"the mechanism {mechanism.name!r} has no response that can be made again; take 'grr', 'sue', 'oue', "
        "'olh' or a longitudinal one, or fresh noise."
    )


def memo_parameters(mechanism: Mechanism) -> dict[str, int]:
    """Return the parameters by which a plan names the mechanism of the response that is kept, on its own."""
    stored = memo_mechanism(mechanism)
    return {"g": stored.buckets} if isinstance(stored, Hashing) else {}


def shared_rates(mechanism: Mechanism) -> tuple[float, float]:
    """Return the memo's part of the variance of one person's estimate of a value: of another's, of the own.

    The memo marks the true value with probability p1 and another with q1, and a report's expectation moves
    by p2 - q2 with the mark. So of the estimate, whose gap is (p1-q1)(p2-q2), the memo's part varies by
    q1(1-q1)/(p1-q1)^2 for a value that the person does not have, and by p1(1-p1)/(p1-q1)^2 for the one that
    the person has: the variances of the memo's own mechanism for one person. Two reports through one memo
    have exactly this in common; their fresh noise is independent.
    """
    kept = memo_mechanism(mechanism)
    none, full = (float(np.max(kept.variance(1, share))) for share in (0.0, 1.0))
    return none, full


def crowd_memos(
    mechanism: Mechanism, attribute: Attribute, secrets: Sequence[bytes], epoch: str, codes: AnyCodes
) -> Reports:
    """Return everybody's memo, one row for each secret and its code, as each device's `KeyedMemory` has it.

    For one secret, channel, attribute, epoch and value it is the same for ever.
    """
    stored, values = memo_mechanism(mechanism), check_codes(codes, attribute.size, "codes")
    if len(values) != len(secrets):
        raise invalid("codes", f"one for each of {len(secrets)} secrets", f"{len(values)} codes")
    channel, name = memo_channel(stored, attribute), attribute.name
    count, rows = stored.shared_words, len(values)
    shared = np.zeros((rows, 0), dtype=np.uint64)
    own = [attribute.values[code] for code in values.tolist()]
    if count:
        shared = crowd_words(secrets, [""] * rows, {"": Topic("shared", channel, name, epoch, "")}, count)
        told = stored.subjects(values, shared)
        own = [said or value for said, value in zip(told, own, strict=True)]
    topics = {said: Topic("response", channel, name, epoch, said) for said in set(own)}
    words = crowd_words(secrets, own, topics, stored.memo_words)
    return stored.made_of_all(values, words, shared)


def crowd_words(
    secrets: Sequence[bytes], subjects: Sequence[str], topics: Mapping[str, Topic], count: int
) -> Words:
    """Return the first words of each subject's topic under its secret, as `keyed_words` has them.

    Their shape is (secrets, count).
    """
    blocks = -(-count // BLOCK_WORDS)
    # Most people share few topics, which need not be encoded for each of them.
    starts = {
        said: [i.to_bytes(4, "big") + topic.encoded() for i in range(1, blocks + 1)]
        for said, topic in topics.items()
    }
    digest = hmac.digest
    made = b"".join([
        digest(secret, start, "sha256")
        for secret, said in zip(secrets, subjects, strict=True)
        for start in starts[said]
    ])  # fmt: skip
    words = np.frombuffer(made, dtype="<u8").astype(np.uint64, copy=False)
    return words.reshape(len(secrets), blocks * BLOCK_WORDS)[:, :count]


def sent_again(mechanism: Mechanism, memos: Reports, seed: int | None) -> Reports:
    """Return a report of each memo: fresh noise on it, or the memo as it is where the mechanism adds none."""
    return mechanism.report(memos, seed=seed) if isinstance(mechanism, Longitudinal) else memos
