"""Seeds derived from numbers and names, so that no generator state has to be saved or advanced in order."""

import hashlib


def derived_seed(*parts: int | str) -> int:
    """64 bits that change unpredictably when any part does."""
    digest = hashlib.blake2b(repr(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little")
