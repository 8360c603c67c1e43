"""The settings in the section `plugins.tally` of the configuration."""

import attrs

from beaver_hostspecs.settings import between, setting


@attrs.frozen(kw_only=True)
class TallySettings:
    """The settings of the plugin; `recallLimit` in the file."""

    recall_limit: int = setting(
        default=3, help="how many earlier prompts of the session to recall", validator=between(0, 100)
    )
