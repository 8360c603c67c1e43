"""The hooks a plugin may implement: the plugin author's guide.

Write a class, mark the methods you want with `@hookimpl`, and name a zero-argument factory for it in the entry-point
group `beaver_hooks`. Take only the arguments you need, by these names. The four turn hooks, `before_compaction`,
`start` and `stop` are coroutine functions; the others are plain functions. A wrapper, a synchronous turn hook or a
misspelt hook is refused with a sentence when the plugin is registered.

Turn hooks of several plugins run side by side, each in a task of its own with its own deadline; where order shows
(the order of contributions) it is the order of registration, with `tryfirst` and `trylast` honoured. No plugin sees
the answer of another one.

A turn hook that raises, exceeds its deadline or answers the wrong type costs its plugin that one contribution: an audit
event, health `degraded since ...`, and the turn goes on as if the hook had answered `None`. Only a plugin that the
memory mode or the host makes fail-closed stops a turn, and only in `before_prompt`. So let errors out unless you can
say something better about them; if you handle one, report it (`report.degraded`, `report.outcome`). Never swallow
cancellation, and never block the event loop: the host names the plugin that does.

A plugin whose `before_prompt` fails three turns in a row, or blocks the event loop once beyond its deadline, is
suspended: turns go on without that hook, its other hooks are called as before, and health says until when. Then single
turns probe it, rarely and in the background: the hook is called with that turn, whose other hooks do not wait for it,
and the answer serves only to end the suspension. A fail-closed plugin is never suspended.

The host calls the turn hooks in `beaver_hooks/turns/lifecycle.py`, and `before_compaction` in
`beaver_hooks/turns/compactions.py`.
"""

from collections.abc import Iterable

from beaver_hostspecs.backups import StateBackup
from beaver_hostspecs.contributions import Contribution
from beaver_hostspecs.markers import hookspec
from beaver_hostspecs.plugins import Command, Deadlines, PluginInfo, Setup, Tool
from beaver_hostspecs.reports import Report
from beaver_hostspecs.subjects import SubjectData
from beaver_hostspecs.turns import Answer, Compaction, DropReason, ToolResult, Turn

# --- The life of a plugin ---------------------------------------------------------------------------------------


@hookspec
def describe() -> PluginInfo:  # type: ignore[empty-body]
    """Describe the plugin: version, settings class, rules, deadlines.

    Called once per host, before `configure` and every other hook. A plugin without it has no settings,
    no rules and the default deadlines.

    Ordering: plugins are described in the order in which they are registered.

    On failure: a required plugin fails loading; another one becomes `unavailable`, and the rest load.

    Returns:
        The plugin's description. A contract version with another major number is refused. `None` is refused.
    """


@hookspec
def configure(setup: Setup) -> Deadlines | None:
    """Take your settings and your state folder, and build your objects, without waiting for anything.

    Called once per host, after `describe` and before `start`. No network here, and nothing that takes long.

    Args:
        setup: the settings as an instance of the class you declared (or `None`), the mode, your state folder, whether
            files in it may be believed, the services of the host, and a report for events outside turns.

    Ordering: registration order.

    On failure: `ConfigurationError` fails loading with its sanitised message. `PluginUnavailable` leaves the plugin
    out with one warning, `PluginTurnedOff` without one. Any other error makes it `unavailable`, or fails loading if it
    is required.

    Returns:
        The deadlines that follow from the settings, in place of those of `describe`; `None` to leave those.
    """


@hookspec
def provide_tools() -> Iterable[Tool]:  # type: ignore[empty-body]
    """Offer tools to the model.

    Called once per host, after `configure`. A tool runs with the turn it is called in, so that trust and scope hold.

    Ordering: the first plugin to offer a name keeps it; a second tool of that name is refused and audited.

    On failure: as for `configure`.

    Returns:
        The tools; `None` for none.
    """


@hookspec
def provide_commands() -> Iterable[Command]:  # type: ignore[empty-body]
    """Offer subcommands of `/memory <plugin>` to the user.

    Called once per host, after `configure`. A command named `overview`, called without words, is shown below the
    plugin's health in the overview of `/memory`.

    Ordering: registration order; names are per plugin and cannot clash with another plugin's.

    On failure: as for `configure`.

    Returns:
        The commands; `None` for none.
    """


@hookspec
def provide_backup() -> StateBackup | None:
    """Offer to copy your state into a backup, and to bring it back.

    Called after `configure`, also where the plugin is never started: `beaver backup` and `beaver restore` configure the
    plugins and start none. Without it the files of the plugin are not in a backup, which says so.

    Ordering: the copies are written and restored one after the other, in registration order.

    On failure: the command ends with the error, and makes no backup; a restore leaves the parts that it has restored.

    Returns:
        The three functions of a backup; `None` if the plugin keeps nothing that is worth one.
    """


@hookspec
def subject_data() -> SubjectData | None:
    """Offer to export and to erase the data of one person.

    Called after `configure`, also where the plugin is never started: `beaver memory export --subject` and
    `beaver memory erase --subject` configure the plugins and start none. Without it the data that the plugin keeps is
    not reached: the report names the plugin, and the commands exit with 1.

    Ordering: one plugin after the other, in registration order; the host's own data comes last.

    On failure: the report names the plugin with its error, the others are asked all the same, and the command fails.

    Returns:
        The three functions; `None` if the plugin keeps nothing about persons.
    """


@hookspec
async def start() -> None:
    """Open connections, start workers, sweep leftovers.

    Called once per host, on its event loop, after `configure` and before the first turn that sees the plugin.

    Ordering: one plugin after the other, in registration order: each is configured and started before the next.

    On failure, the deadline included: a required plugin fails loading; another one becomes `unavailable`. Of a
    `PluginUnavailable` the reason is shown, of any other error its class.
    """


@hookspec
async def stop() -> None:
    """Close the connections and workers that `start` opened.

    Called once, when the host closes or the plugin is unregistered, after its queued work was drained or discarded.
    No other hook is called afterwards. Called too when a later plugin kept the host from opening.

    Ordering: reverse registration order.

    On failure, the deadline included: audited; closing goes on.
    """


# --- The life of a turn -----------------------------------------------------------------------------------------


@hookspec
async def before_prompt(turn: Turn, report: Report) -> Contribution | None:
    """Recall: contribute what the model should know before it sees the prompt.

    Called once per user prompt, before the model sees anything. The user waits for it, so keep to your deadline: it
    is the only hook on the path to the answer.

    Args:
        turn: the turn that begins.
        report: reports the candidates (`candidates`), the decisions of your gates (`decision`) and failures.

    Ordering: all plugins side by side; contributions are put together in registration order.

    On failure: as if it had answered `None`, with an audit event and degraded health. For a fail-closed plugin
    `open_turn` raises its error unchanged (`PluginFailed` for a timeout or a wrong type) and the turn is dropped.
    Three failures in a row suspend the hook of a plugin that is not fail-closed.

    Returns:
        A `Contribution`: trusted blocks for the system prompt, untrusted references, hints. `None` leaves
        the prompt exactly as it would be without the plugin.
    """


@hookspec
async def on_tool_result(turn: Turn, result: ToolResult, report: Report) -> None:
    """Learn from a tool call.

    Called after each tool call of the turn, success or failure, in the background: the agent does not wait.

    Args:
        turn: the open turn.
        result: the call and its outcome. Heed `result.private` and `result.external`.
        report: reports how each write ended.

    Ordering: in the order of the tool calls within one session and plugin; other plugins are independent.

    On failure: audited, health degraded; other plugins are not affected.

    Returns:
        Nothing; any other answer is a failure of the plugin.
    """


@hookspec
async def after_prompt(turn: Turn, answer: Answer, report: Report) -> None:
    """Store the useful parts of a turn that completed normally.

    Called once per committed turn, in the background, after the user has the answer, in the context that was current
    at commit. Never called for a turn that failed, was cancelled, blocked or abandoned.

    Args:
        turn: the turn.
        answer: the final answer and the turn's messages, without recalled references.
        report: reports how each write ended (`outcome`), as a named outcome.

    Ordering: after every `on_tool_result` of the same turn; within one session and plugin in order of commit.

    On failure: audited, health degraded; the answer stands, for a fail-closed plugin too.

    Returns:
        Nothing; any other answer is a failure of the plugin.
    """


@hookspec
async def on_turn_dropped(turn: Turn, reason: DropReason, report: Report) -> None:
    """Discard the data that you held for a turn without an answer.

    Called once per turn that was opened and then failed, was cancelled, blocked or abandoned, in the background;
    also for a turn whose `before_prompt` was cancelled before it answered.

    Args:
        turn: the turn.
        reason: why it was dropped.
        report: reports your actions.

    Ordering: after every `on_tool_result` of the same turn, within one session and plugin.

    On failure: audited, health degraded.

    Returns:
        Nothing; any other answer is a failure of the plugin.
    """


# --- The life of a session --------------------------------------------------------------------------------------


@hookspec
async def before_compaction(compaction: Compaction, report: Report) -> None:
    """Store what you still hold of a session, and return only once that is durable.

    Called each time a host is about to shorten the context of a session, so that the model no longer sees the earlier
    messages; not while memory is off. The host waits for it. A plugin that stores each turn in `after_prompt` needs no
    such hook.

    To return is to confirm: what you keep of the session's committed turns, of this user and as far as this trust
    reaches, survives the end of the process. Where that is not so, raise, or report a `failed` or `unknown` outcome.

    Args:
        compaction: the session, and who compacts it why.
        report: reports how each write ended.

    Ordering: after every queued turn hook of the session, in each plugin; all plugins side by side. A plugin whose
    queued calls do not end within its longest background deadline is not called.

    On failure: the plugin counts as not confirmed; audited, health degraded. The host gets no error, of a fail-closed
    plugin neither.

    Returns:
        Nothing; any other answer is a failure of the plugin.
    """
