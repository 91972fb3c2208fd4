"""Which protocol to collect with."""

from sidelight.advice.advice import Advice, Option, advise, choose_protocol

__all__ = ["Advice", "Option", "advise", "choose_protocol"]
