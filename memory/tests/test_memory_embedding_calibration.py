"""Scales: the identity of a model gives the meaning of its cosines."""

from beaver_memory.embedding import static
from beaver_memory.embedding.calibration import SCALES, UNKNOWN, scale_of
from beaver_memory.embedding.catalog import KNOWN
from beaver_memory.embedding.factory import onnx_identity
from beaver_memory.embedding.protocol import Identity


def test_models_that_are_measured():
    """Every model that can be installed and the static one have a scale; a weak one counts less beside words."""
    installed = [scale_of(onnx_identity(known)) for known in KNOWN.values()]
    weak = scale_of(Identity(provider=static.PROVIDER, model=static.MODEL, dimensions=static.DIMENSIONS))

    assert [*SCALES.values()] == [*installed, weak]
    assert all(weak.share < each.share for each in installed)
    assert all(each.apart is not None and each.apart < each.alike for each in SCALES.values())


def test_others():
    """An unknown model, and no model, have the unknown scale."""
    other = Identity(provider="openai", model="e5-small", dimensions=384)

    assert [UNKNOWN, UNKNOWN] == [scale_of(other), scale_of(None)]
