"""The meaning of a model's cosines: those of one model lie between .7 and .9, those of another between 0 and .7."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal

import attrs
from attrs import field
from attrs.validators import ge, le

from beaver_memory.embedding import onnx, static
from beaver_memory.embedding.protocol import Identity

TextLanguage = Literal["german", "chinese", "other"]
"""The languages that have a scale of their own."""


@attrs.frozen(kw_only=True)
class Cut:
    """The scores from which on memories are worth giving; see `docs/explanation/decisions/0081-given-by-score.md`.

    Attributes:
        floor: the lowest score of the best memory for a query about something that the memories know.
        share: the share of the best score that another memory needs.
    """

    floor: float = field(default=0.5, validator=[ge(0.0), le(1.0)])
    share: float = field(default=0.65, validator=[ge(0.0), le(1.0)])


@attrs.frozen(kw_only=True)
class Scale:
    """The meaning of a model's vectors.

    Attributes:
        share: the weight of vectors beside words, which have the rest.
        apart: the cosine from which on a question and a passage have anything in common; `None` without a measurement.
        alike: the cosine of a question and a passage that answers it.
        cut: the scores from which on memories are worth giving.
    """

    share: float = field(default=0.45, validator=[ge(0.0), le(1.0)])
    apart: float | None = None
    alike: float = 1.0
    cut: Cut = Cut()


UNKNOWN = Scale()
"""The scale of a model without a measurement: its nearest passages count as near."""

SCALES: Mapping[tuple[str, str], Scale] = MappingProxyType(
    {
        (onnx.PROVIDER, "e5-small"): Scale(share=0.45, apart=0.79, alike=0.91, cut=Cut(floor=0.42, share=0.7)),
        (static.PROVIDER, static.MODEL): Scale(share=0.2, apart=0.2, alike=0.65, cut=Cut(floor=0.35, share=0.6)),
    }
)
"""Measured scales, by provider and model; see `docs/explanation/decisions/0032-what-a-score-means.md`."""

_IN_GERMAN: Mapping[tuple[str, str], Scale] = MappingProxyType(
    {(onnx.PROVIDER, "e5-small"): attrs.evolve(SCALES[onnx.PROVIDER, "e5-small"], apart=0.84)}
)
"""English models: the cosines of German texts lie closer together."""

_WITHOUT_CHINESE = frozenset({(onnx.PROVIDER, "e5-small")})
"""Models that know hardly any Chinese character: their vectors of Chinese texts say nothing about them."""


BY_WORDS = Cut(floor=0.25, share=0.6)
"""The cut of a search by words alone."""


def scale_of(identity: Identity | None, language: TextLanguage = "other") -> Scale:
    """Return the scale of an embedder's vectors, for a query in a language."""
    if identity is None:
        return UNKNOWN
    model = (identity.provider, identity.model)
    general = SCALES.get(model, UNKNOWN)
    return _IN_GERMAN.get(model, general) if language == "german" else general


def knows(identity: Identity, language: TextLanguage) -> bool:
    """Return whether an embedder's vectors say anything about texts in a language."""
    return language != "chinese" or (identity.provider, identity.model) not in _WITHOUT_CHINESE
