"""The section `agent` of the configuration: how the reference agent runs."""

from pathlib import Path

import attrs

from beaver_hostspecs import Trust
from beaver_hostspecs.settings import between, distinct, one_of, setting

SYSTEM_PROMPT = "You are a helpful assistant. Answer in the user's language, and say so when you do not know something."


@attrs.frozen(kw_only=True)
class AgentSettings:
    """The section `agent`."""

    system_prompt: str = setting(
        default=SYSTEM_PROMPT, help="the start of the system prompt; plugins add their rules and blocks to it"
    )
    trust: str = setting(
        default=Trust.FULL.value,
        help="how far memory trusts the agent's user; a run may lower it",
        validator=one_of(*(each.value for each in Trust)),
    )
    max_tool_rounds: int = setting(
        default=8, help="how often the model may ask for tools before its turn ends", validator=between(1, 100)
    )
    history_messages: int = setting(
        default=50, help="how many messages of the session the model gets", validator=between(0, 10_000)
    )
    store_secrets: bool = setting(
        default=False,
        help="whether stored sessions keep the passwords and keys that were said; else later turns see a mask",
    )
    skills: tuple[str, ...] = setting(
        default=(), help="names of the skills that are active in every run", validator=distinct()
    )
    skill_folders: tuple[Path, ...] = setting(
        default=(), help="folders whose subfolders hold a SKILL.md each; the first one wins", validator=distinct()
    )
    tool_output_characters: int = setting(
        default=20_000, help="characters of a tool's output that the model gets", validator=between(100, 1_000_000)
    )
