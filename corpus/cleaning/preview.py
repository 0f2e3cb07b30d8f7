"""Preview: screening of a small sample, before anyone waits for gigabytes."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice

from korbert.corpus.cleaning.clean import screen, without_document
from korbert.corpus.cleaning.contamination import make_index
from korbert.corpus.corpus_settings import CleanSettings
from korbert.corpus.readers import SourceRow, chunks, rows
from korbert.records import File

_CHUNK_BYTES = 1 << 20
_MAX_FILES = 4  # of a source, evenly spaced


@dataclass(frozen=True)
class Shown:
    """A row before and after screening. id: None if unreadable."""

    id: str | None
    place: str
    before: str
    after: str
    reason: str | None
    detail: str | None

    @property
    def changed(self) -> bool:
        return self.before != self.after


@dataclass(frozen=True)
class Preview:
    """A sample of rows. masked: numbers of masks by kind. read: numbers of rows sampled from, by source."""

    rows: list[Shown]
    masked: Counter[str]
    read: dict[str, int]

    @property
    def reasons(self) -> Counter[str]:
        """Numbers of dropped rows of the sample, by reason."""
        return Counter(row.reason for row in self.rows if row.reason is not None)


def preview(settings: CleanSettings, sources: Mapping[str, Sequence[File]], count: int) -> Preview:
    """About `count` rows, the same number of each source, sampled from the beginnings of some files.

    The rows are screened as `clean` does; duplicates, which only the whole corpus shows, are not looked for. sources:
    name of a source or evaluation set -> its files. Raises CorpusError, as `clean` does, if a source has no document in
    these beginnings, or an evaluation set has no text.
    """
    shown_rows: list[Shown] = []
    mask_counts: Counter[str] = Counter()
    row_counts: dict[str, int] = {}
    index = make_index(settings, sources) if settings.evaluation else None
    per_source = -(-count // len(settings.sources))
    for source in settings.sources:
        # The first chunk of some files.
        files = sources[source.name]
        longest = settings.filters.max_record_bytes
        candidates: list[SourceRow] = []
        for file in files[:: -(-len(files) // _MAX_FILES)]:
            for chunk in islice(chunks(source, files, _CHUNK_BYTES, longest, only=(file,)), 1):
                candidates += rows(chunk)
        if all(row.reason for row in candidates):
            raise without_document(source.name, files, [row.detail for row in candidates])
        row_counts[source.name] = len(candidates)

        # A sample by the hash of the place, in the order of the files.
        draws = [blake2b(row.place.encode("utf-8", "surrogatepass"), digest_size=8).digest() for row in candidates]
        sample = [candidates[i] for i in sorted(sorted(range(len(candidates)), key=draws.__getitem__)[:per_source])]
        screened, counts, _ = screen(sample, settings, index)
        sample_masks = {name: number for name, number in counts.items() if name.startswith("masked.")}
        mask_counts.update({name.removeprefix("masked."): number for name, number in sample_masks.items()})
        for row, result in zip(sample, screened, strict=True):
            shown_rows.append(
                Shown(row.document_id(source.name), row.place, row.text, result.text, result.reason, result.detail)
            )
    return Preview(shown_rows, mask_counts, row_counts)
