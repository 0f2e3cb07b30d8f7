"""Limits of size and time."""

from dataclasses import dataclass

__all__ = ["CHARS_A_PIECE", "Limits"]

CHARS_A_PIECE = 4  # a text with more characters than that is too long without tokenizing it; Korean has about two


@dataclass(frozen=True)
class Limits:
    """body_bytes, texts: of a request. pieces: of a text that a model reads as a whole (answers, tags).

    batch_pieces: of a batch; a longer text is a batch of its own. queue: texts that wait or are being computed.
    seconds: until a request has its answer. body_seconds: until its body has arrived. head_seconds: until its head has
    arrived, and between the requests of a connection. connections: open at once; each may hold a body in memory.
    """

    body_bytes: int = 1 << 20
    texts: int = 2_048
    pieces: int = 4_096
    batch_pieces: int = 2_048
    queue: int = 4_096
    seconds: float = 30
    body_seconds: float = 10
    head_seconds: float = 10
    connections: int = 512
