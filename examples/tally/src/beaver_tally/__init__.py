"""An example plugin: counts the turns of a session and recalls its earlier prompts.

It imports the contract and nothing of the host. The entry point `tally` names `Tally`, its zero-argument factory.
"""

from beaver_tally.plugin import Tally
from beaver_tally.settings import TallySettings

__all__ = ["Tally", "TallySettings"]
