"""Every harness that the support matrix is made from, in the order of its columns."""

from adapters.harness_agent_framework import AgentFrameworkHarness, AgentFrameworkInLoopHarness
from adapters.harness_claude_agent_sdk import ClaudeAgentSdkHarness
from adapters.harness_claude_code import ClaudeCodeHarness
from adapters.harness_google_adk import GoogleAdkHarness, GoogleAdkInLoopHarness
from adapters.harness_langchain import LangchainHarness, LangchainInLoopHarness
from adapters.harness_openai_agents import OpenaiAgentsHarness, OpenaiAgentsInLoopHarness
from adapters.harness_pydantic_ai import PydanticAIHarness, PydanticAIInLoopHarness
from adapters.harness_strands import StrandsHarness, StrandsInLoopHarness
from conformance.harness_agent import AgentHarness
from conformance.harness_plain import PlainHarness

IN_THREAD = (
    AgentFrameworkHarness,
    GoogleAdkHarness,
    LangchainHarness,
    OpenaiAgentsHarness,
    PydanticAIHarness,
    StrandsHarness,
)
"""The adapters with a `SyncHost`."""

HARNESSES = (AgentHarness, PlainHarness, *IN_THREAD, ClaudeCodeHarness, ClaudeAgentSdkHarness)

IN_LOOP = (
    AgentFrameworkInLoopHarness,
    GoogleAdkInLoopHarness,
    LangchainInLoopHarness,
    OpenaiAgentsInLoopHarness,
    PydanticAIInLoopHarness,
    StrandsInLoopHarness,
)
"""The same with a `Host` of their own event loop, in the same order."""
