"""The offline provider remembers when told to, and quotes what it was given."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from beaver_hooks.agent.messages import ChatMessage, Completion, Usage
from beaver_hooks.agent.providers.offline import NO_TOOL, NOTHING, OfflineProvider, best_lines
from beaver_hooks.tools.outcomes import ToolCall
from beaver_hostspecs import Reference
from beaver_hostspecs.rendering import render_references

MEMORY = [{"name": "other"}, {"name": "memory", "description": "d", "parameters": {}}]


def system(text):
    return ChatMessage(role="system", text=text)


def user(text):
    return ChatMessage(role="user", text=text)


def assistant(text, *calls):
    return ChatMessage(role="assistant", text=text, tool_calls=calls)


def references(plugin, *texts):
    found = render_references(plugin, [Reference(text=text) for text in texts], boundary="boundary-0123")
    return user(found.text)


async def ask(*messages, tools=MEMORY, on_delta=None):
    provider = OfflineProvider()
    answer = await provider.complete(messages, tools=tools, on_delta=on_delta)
    await provider.close()
    return answer


@pytest.mark.parametrize(
    ("prompt", "target", "content"),
    [
        ("Remember that the server is called Biber.", "memory", "the server is called Biber."),
        ("please remember: tea at five", "memory", "tea at five"),
        ("  Please, remember my dog is called Rex\n", "user", "my dog is called Rex"),
        ("remember I'm left-handed", "user", "I'm left-handed"),
        ("Merk dir, dass der Server Biber heißt", "memory", "der Server Biber heißt"),
        ("Bitte merke dir: mein Hund heißt Rex", "user", "mein Hund heißt Rex"),
        ("Merk dir bitte, dass ich Tee mag.", "user", "ich Tee mag."),
        ("Remember this:\none\ntwo", "memory", "this:\none\ntwo"),
    ],
)
async def test_told_to_remember(prompt, target, content):
    """The provider calls the memory tool with the words to remember, for target `user` or else for `memory`."""
    answer = await ask(system("s"), user(prompt))

    (call,) = answer.tool_calls
    assert ("", "tool_calls", "memory", "offline-1") == (answer.text, answer.finish_reason, call.name, call.id)
    assert {"action": "add", "target": target, "content": content} == json.loads(call.arguments)


async def test_every_call_has_its_own_id():
    """Calls are counted over the whole conversation."""
    before = ToolCall(id="offline-1", name="memory", arguments="{}")
    messages = [user("x"), assistant("", before), ChatMessage(role="tool", tool_call_id="offline-1"), assistant("done")]

    assert "offline-2" == (await ask(*messages, user("Remember tea"))).tool_calls[0].id


async def test_without_the_tool():
    """Without the memory tool, the provider answers that it cannot remember."""
    assert NO_TOOL == (await ask(user("Remember tea"), tools=[])).text


@pytest.mark.parametrize(
    ("result", "expected"),
    [
        ("Added.\n 1 entry.", "The tool memory answered: Added. 1 entry."),
        ("Error: the file is full", "The tool memory answered: Error: the file is full"),
        ("", "The tool memory answered: nothing"),
        ("x" * 501, "The tool memory answered: " + "x" * 497 + "..."),
    ],
)
async def test_after_a_tool(result, expected):
    """After a tool result the provider quotes it, success or not, and calls no further tool."""
    call = ToolCall(id="offline-1", name="memory", arguments="{}")
    answer = await ask(
        user("Remember tea"), assistant("", call), ChatMessage(role="tool", text=result, tool_call_id="offline-1")
    )

    assert (expected, (), "stop") == (answer.text, answer.tool_calls, answer.finish_reason)


async def test_after_several_tools():
    """The answer quotes every tool result in order, also the result of an unknown call."""
    call = ToolCall(id="a", name="memory", arguments="{}")
    results = [ChatMessage(role="tool", text=text, tool_call_id=id_) for text, id_ in (("one", "a"), ("two", "b"))]

    expected = "The tool memory answered: one\nThe tool that was called answered: two"
    assert expected == (await ask(user("x"), assistant("", call), *results)).text


BLOCKS = system("You are Beaver.\n\nUSER\n- The favourite colour is green.\n- Likes tea.")


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("What is my favourite colour?", "From the blocks in the system prompt: - The favourite colour is green."),
        ("Do you remember where the cats sleep?", 'From the references of the memory plugin "gateway": The cat sleeps in the shed.'),
        ("Remember when I bought boats?", "From the history: I bought a boat."),
        ("你好吗", 'From the references of the memory plugin "gateway": 你好'),
        ("Wo steht der Schuppen?", NOTHING),
        ("What is it?", NOTHING),
        ("", NOTHING),
        ("How does the gateway recall?", NOTHING),
        ("What was the color?", NOTHING),
    ],
)  # fmt: skip
async def test_questions(question, expected):
    """The provider quotes the line that shares most words with the question and names its source."""
    recalled = references("gateway", "Tea is at five.", "The cat sleeps in the shed.", "你好")
    history = [user("I bought a boat."), assistant("Good."), user("What was the color of boats?"), assistant(NOTHING)]

    assert expected == (await ask(BLOCKS, recalled, *history, user(question))).text


async def test_several_sources():
    """Lines that are equally good are all quoted, each with its source, up to three."""
    answer = await ask(
        BLOCKS, references("local", "Tea in the morning."), user("No tea today."), assistant("Tea!"), user("Tea?")
    )

    assert answer.text.splitlines() == [
        "From the blocks in the system prompt: - Likes tea.",
        'From the references of the memory plugin "local": Tea in the morning.',
        "From the history: No tea today.",
    ]


async def test_no_prompt():
    """Without any user message the provider answers that it found nothing."""
    assert NOTHING == (await ask(BLOCKS)).text


def test_old_history_is_not_read():
    """The provider reads only the newest messages of the history, and references at any place."""
    filler = [assistant("Yes.")] * 200

    assert [] == best_lines("tea", [user("I like tea."), *filler])
    assert [('the references of the memory plugin "p"', "tea")] == best_lines("tea", [references("p", "tea"), *filler])
    assert [("the history", "I like tea.")] == best_lines("tea", [user("I like tea."), *filler[1:]])


async def test_usage_is_an_estimate():
    """Four letters to a token, of all messages and of the answer."""
    answer = await ask(user("abcdefgh"))

    assert Completion(text=NOTHING, usage=Usage(input_tokens=2, output_tokens=8), finish_reason="stop") == answer


async def test_a_row_of_blanks():
    """A prompt that is nearly nothing but blanks takes no time to speak of."""
    assert NOTHING == (await ask(user("merk dir" + " " * 10**6 + "?"))).text


words = st.sampled_from(["remember", "that", "merk", "dir", "tea", "my", "?", "\n", " ", "|", "Reference data", "你"])
texts = st.lists(words | st.text(st.characters(codec=None), max_size=3), max_size=8).map("".join)
messages = st.builds(ChatMessage, role=st.sampled_from(["system", "user", "assistant", "tool"]), text=texts)


@given(st.lists(messages, max_size=6), st.booleans())
async def test_it_never_fails(conversation, with_tool):
    """Any conversation has exactly one answer, always the same, and its pieces join to the whole."""
    pieces = []
    tools = MEMORY if with_tool else []
    answer = await ask(*conversation, tools=tools, on_delta=pieces.append)

    assert answer == await ask(*conversation, tools=tools)
    assert answer.text == "".join(pieces)
    assert bool(answer.text) != bool(answer.tool_calls)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ('{"success": true, "message": "Entry added."}', "Entry added."),
        ('{"success": false, "error": "It is full."}', "It is full."),
        ('{"found": []}', '{"found": []}'),
        ('{"message": 7}', '{"message": 7}'),
        ('["message"]', '["message"]'),
        ("[" * 100_000, "[" * 497 + "..."),
    ],
)
async def test_of_a_tool_s_answer_it_says_the_sentence(answer, said):
    """An object with a message is answered by that; anything else is quoted as it is."""
    call = ToolCall(id="1", name="memory", arguments="{}")
    given = [
        ChatMessage(role="assistant", tool_calls=(call,)),
        ChatMessage(role="tool", text=answer, tool_call_id="1"),
    ]

    assert f"The tool memory answered: {said}" == (await OfflineProvider().complete(given)).text
