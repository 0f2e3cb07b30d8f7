"""What the service refuses, and when it stops waiting."""

from dataclasses import dataclass

__all__ = ["CHARS_A_PIECE", "Limits"]

CHARS_A_PIECE = 4  # more than that, and a text is too long before anybody looks: Korean text has about two


@dataclass(frozen=True)
class Limits:
    """body_bytes: of a request. texts: of a request. pieces: of a text of which a model reads all (answers, tags).

    batch_pieces: of a batch; one longer text is a batch of its own. queue: texts that wait or are computed.
    seconds: until a request has its answer. body_seconds: until its body is there. head_seconds: until its head is
    there, and between the requests of a connection. connections: at once; each may hold a body in memory.
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
