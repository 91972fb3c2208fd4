"""Advice before collecting: the error to expect of each protocol, and which one to use."""

from sidelight.advice.advice import Advice as Advice, advise as advise, choose_protocol as choose_protocol
