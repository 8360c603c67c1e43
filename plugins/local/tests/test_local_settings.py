"""The section `memory.local`: names and defaults of the seeds, and each bound with the path of its field."""

import json

import pytest

from beaver_hooks.config.converter import structure
from beaver_hooks_local.settings import PATH, LocalSettings
from beaver_hostspecs import ConfigurationError
from beaver_memory.embedding.settings import EmbeddingSettings

SETTINGS = (
    "`enabled`, `databasePath`, `project`, `store`, `embedding`, `vectors`, `promptIndex`, `recall`, `capture`, "
    "`redaction`, `ranking`, `traceFile`"
)
PROVIDERS = "`auto`, `none`, `static`, `onnx`, `openai-compatible`, `openai`, `voyage`, `cohere`, `ollama`"


def load(section):
    return structure(LocalSettings, section, PATH, environment={})


@pytest.mark.shows("002-026", "002-027", "002-028", "002-029", "003-096")
def test_defaults():
    """It is off by default; the prompt index has the defaults of the seeds."""
    settings = load({})
    index, recall = settings.prompt_index, settings.recall

    assert LocalSettings() == settings
    assert (False, None, None) == (settings.enabled, settings.database_path, settings.trace_file)
    assert (True, 30, 3000, 3) == (index.enabled, index.limit, index.max_tokens, index.recent_days)
    assert (True, 8, 180.0, 4) == (recall.enabled, recall.top_k, recall.cache_seconds, recall.topic_turns)
    assert "context" == settings.ranking.formula


@pytest.mark.shows("002-017", "002-107")
def test_names(tmp_path):
    """Each field has its camelCase name."""
    embedding = {"model": "m", "dimensions": 8, "baseUrl": "https://models.example/v1", "apiKeyEnv": "KEY"}
    section = {
        "enabled": True,
        "databasePath": str(tmp_path / "memory.db"),
        "embedding": {"provider": "openai-compatible", **embedding},
        "promptIndex": {"enabled": False, "limit": 10, "maxTokens": 100, "recentDays": 30},
        "recall": {
            "enabled": True,
            "topK": 8,
            "minimumScore": 0.5,
            "maxTokens": 500,
            "cacheSeconds": 300,
            "topicTurns": 5,
        },
        "ranking": {"formula": "seed-003"},
        "traceFile": str(tmp_path / "trace.jsonl"),
    }

    assert (tmp_path / "memory.db", 30, 8) == (
        load(section).database_path,
        load(section).prompt_index.recent_days,
        load(section).recall.top_k,
    )
    assert load(section).embedding == EmbeddingSettings(
        provider="openai-compatible", model="m", dimensions=8, base_url="https://models.example/v1", api_key_env="KEY"
    )


@pytest.mark.shows("002-112", "002-113", "002-115", "002-117", "003-097", "003-100", "003-101")
@pytest.mark.parametrize(
    ("section", "path", "problem"),
    [
        ({"enabled": 1}, "enabled", "must be true or false"),
        ({"promptIndex": {"limit": 0}}, "promptIndex.limit", "must be between 1 and 500"),
        ({"promptIndex": {"maxTokens": 0}}, "promptIndex.maxTokens", "must be between 1 and 100000"),
        ({"promptIndex": {"recentDays": 0}}, "promptIndex.recentDays", "must be between 1 and 30"),
        ({"promptIndex": {"recentDays": 31}}, "promptIndex.recentDays", "must be between 1 and 30"),
        ({"recall": {"topK": 2}}, "recall.topK", "must be between 3 and 8"),
        ({"recall": {"topK": 9}}, "recall.topK", "must be between 3 and 8"),
        ({"recall": {"minimumScore": 1.5}}, "recall.minimumScore", "must be between 0 and 1"),
        ({"recall": {"minimumScore": float("nan")}}, "recall.minimumScore", "must be a finite number of sensible size"),
        ({"recall": {"cacheSeconds": 119}}, "recall.cacheSeconds", "must be between 120 and 300"),
        ({"recall": {"cacheSeconds": 301}}, "recall.cacheSeconds", "must be between 120 and 300"),
        ({"recall": {"topicTurns": 2}}, "recall.topicTurns", "must be between 3 and 5"),
        ({"recall": {"maxTokens": 0}}, "recall.maxTokens", "must be between 1 and 100000"),
        ({"capture": {"minTurnMessages": 0}}, "capture.minTurnMessages", "must be between 1 and 100"),
        ({"embedding": {"dimensions": 8193}}, "embedding.dimensions", "must be between 1 and 8192"),
        ({"embedding": {"provider": "nobody"}}, "embedding.provider", f"must be one of {PROVIDERS}"),
        ({"databasePath": "memory.db"}, "databasePath", "must be an absolute path"),
        ({"traceFile": "t.jsonl"}, "traceFile", "must be an absolute path"),
        ({"nonsense": 1}, "nonsense", f"is not a setting; the settings are {SETTINGS}"),
    ],
)
def test_bounds(section, path, problem):
    """A value out of bounds is refused with the field's path and the allowed values, without the value itself."""
    with pytest.raises(ConfigurationError) as caught:
        load(json.loads(json.dumps(section)))

    assert (f"memory.local.{path}", problem) == (caught.value.path, caught.value.problem)


@pytest.mark.shows("002-111")
@pytest.mark.parametrize("name", ["databasePath", "traceFile"])
def test_the_folder_must_be_there(tmp_path, name):
    """The folder of the database and of the trace file must exist, and must be a folder."""
    for path in (tmp_path / "none" / "x", tmp_path):
        with pytest.raises(ConfigurationError, match="must be a file in a folder that exists") as caught:
            load({name: str(path)})
        assert f"memory.local.{name}" == caught.value.path


def test_the_formula():
    """An unknown formula is refused with the names of the known ones."""
    with pytest.raises(ConfigurationError, match="`context`, `seed-002`, `seed-003`"):
        load({"ranking": {"formula": "best"}})
