"""Limits of size and time."""

from dataclasses import dataclass

CHARS_A_PIECE = 4  # a text with more characters per allowed piece is refused untokenized; Korean has about two


@dataclass(frozen=True)
class Limits:
    """Limits of a service; times are in seconds.

    body_bytes, texts: of a request. pieces: of a text that a model reads completely (answers, tags). batch_pieces: of a
    batch; a longer text is its own batch. queue: texts waiting or being computed. seconds: for an answer. body_seconds:
    for a body to arrive. unread_seconds: for the rest of a body answered before it has arrived. head_seconds: for a
    head to arrive, and between the requests of a connection. connections: open at once; each may hold a body in memory.
    """

    body_bytes: int = 1 << 20
    texts: int = 2_048
    pieces: int = 4_096
    batch_pieces: int = 2_048
    queue: int = 4_096
    seconds: float = 30
    body_seconds: float = 10
    unread_seconds: float = 30
    head_seconds: float = 10
    connections: int = 512
