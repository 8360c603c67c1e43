"""What the cosines of a model mean: those of one model lie between .7 and .9, those of another one between 0 and .7."""

from collections.abc import Mapping
from types import MappingProxyType

import attrs
from attrs import field
from attrs.validators import ge, le

from beaver_memory.embedding import onnx, static
from beaver_memory.embedding.protocol import Identity


@attrs.frozen(kw_only=True)
class Scale:
    """How the vectors of a model are to be read.

    Attributes:
        share: what they count beside words, which have the rest.
        apart: the cosine from which on a question and a passage have anything in common; `None` where nobody has
            measured that.
        alike: the cosine of a question and a passage that answers it.
    """

    share: float = field(default=0.45, validator=[ge(0.0), le(1.0)])
    apart: float | None = None
    alike: float = 1.0


UNKNOWN = Scale()
"""Of a model that was not measured: its nearest are believed to be near."""

SCALES: Mapping[tuple[str, str], Scale] = MappingProxyType(
    {
        (onnx.PROVIDER, "e5-small"): Scale(share=0.45, apart=0.79, alike=0.91),
        (static.PROVIDER, static.MODEL): Scale(share=0.2, apart=0.2, alike=0.65),
    }
)
"""What was measured, by provider and model; see `docs/explanation/decisions/0032-what-a-score-means.md`."""


def scale_of(identity: Identity | None) -> Scale:
    """Return how the vectors of an embedder are to be read."""
    return UNKNOWN if identity is None else SCALES.get((identity.provider, identity.model), UNKNOWN)
