"""The settings in the section `memory.curated` of the configuration."""

from pathlib import PurePath

import attrs

from beaver_hostspecs.settings import Check, between, one_of, setting

PATH = "memory.curated"

_absolute = Check(wanted="must be an absolute path", fits=lambda value: PurePath(value).is_absolute())


@attrs.frozen(kw_only=True)
class CuratedSettings:
    """The settings of the plugin; camelCase in the file."""

    memory_char_limit: int = setting(
        default=2200, help="how many characters MEMORY.md may hold", validator=between(1, 1_000_000)
    )
    user_char_limit: int = setting(
        default=1375, help="how many characters USER.md may hold", validator=between(1, 1_000_000)
    )
    overflow: str = setting(
        default="refuse",
        help="what to do with an entry that does not fit: `refuse` it, or archive the oldest entries",
        validator=one_of("refuse", "archive"),
    )
    per_user: bool = setting(default=False, help="keep one USER.md per user id")
    approval: bool = setting(default=False, help="let every write of the tool wait until the user approves it")
    folder: str | None = setting(
        default=None, help="the folder of the files; by default the plugin's state folder", validator=_absolute
    )
    lock_seconds: float = setting(
        default=2.0, help="the seconds that a write waits for another process", validator=between(0.01, 60)
    )
