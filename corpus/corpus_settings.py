"""Settings of the corpus stages in a recipe. Bytes are of UTF-8 text unless stated otherwise."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, Field, model_validator

from korbert.messages import Message
from korbert.tokenization import AnalyzerOptions, VocabularySettings

MIB = 1 << 20
LONGEST_RECORD = 64 * MIB  # a longer record is dropped unread, however little of it is text

FileKind = Literal["jsonl", "json", "text", "csv", "tsv", "tsv-plain", "tsv-quoted",
                   "parquet", "arrow", "wikipedia", "korquad"]  # fmt: skip
SourceKind = Literal["auto", FileKind]
TextEncoding = Literal["auto", "utf-8", "cp949", "euc-kr", "utf-16"]
_LARGEST = 1 << 31
_NAME = r"^[a-z0-9][a-z0-9_-]*$"

Share = Annotated[float, Field(ge=0, le=1)]


class _Settings(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """Base of all settings of the corpus: strict, and without absurdly large numbers."""

    @model_validator(mode="after")
    def check_numbers(self) -> Self:
        for name, value in self:
            if isinstance(value, int) and value > _LARGEST:
                raise ValueError(Message("{name} is more than {largest:,}: lower it", name=name, largest=_LARGEST))
        return self


class SourceSettings(_Settings):
    """A source of text. Its name is the prefix of the ids of its documents."""

    name: str = Field(pattern=_NAME, description="short name in lower case: wiki, reviews")
    path: str = Field(
        min_length=1,
        description="file, folder or glob, relative to the data folder; sample:NAME; or an address (s3://)",
    )
    kind: SourceKind = Field(
        "auto", description="auto: by suffix; arrow: of a `datasets` data set; korquad: its contexts"
    )
    encoding: TextEncoding = Field("auto", description="of the text; auto: detected from the beginning of each file")
    max_undecodable: Share = Field(0.01, description="maximum share of undecodable bytes; more is an error")
    id: str = Field(
        "id", description='field of the id (jsonl, tables); "", or in a file without "id": line or row numbers'
    )
    text: str = Field("text", description="field of the text (jsonl, tables)")
    documents: Literal["line", "blank", "file"] = Field(
        "line", description="document unit of text files: a line, a block between blank lines, or the whole file"
    )
    pairs: bool = Field(True, description="false: no NSP pairs are made from it (such as one comment per line)")

    @property
    def fields(self) -> list[str]:
        """The fields to read, of JSON or of a table: that of the id, if there is one, and that of the text."""
        return [name for name in (self.id, self.text) if name]


class NormalizeSettings(_Settings):
    """Normalization of text. NFC is not optional: all later stages rely on it."""

    control: bool = Field(True, description="remove control characters other than line feed and tab")
    zero_width: bool = Field(True, description="remove invisible characters and direction marks, not joiners in emoji")
    spaces: bool = Field(True, description="collapse white space in lines to one space, blank lines to one; strip ends")
    html: bool = Field(True, description="resolve entities (&amp;lt;), remove leftover tags")
    max_repeats: int = Field(
        5, ge=0, description="maximum length of a run of one jamo or punctuation mark (ㅋㅋㅋㅋㅋㅋㅋ, !!!!!!!); 0: off"
    )


class PersonalSettings(_Settings):
    """Personal data that is replaced by a tag of its kind, such as <이메일>."""

    email: bool = Field(True, description="mask e-mail addresses")
    phone: bool = Field(True, description="mask phone numbers")
    resident_number: bool = Field(True, description="mask resident registration numbers, by date and check digit")
    card: bool = Field(True, description="mask card numbers, validated by the Luhn algorithm")
    account: bool = Field(True, description="mask account numbers next to a bank's name or a word for account")


class FilterSettings(_Settings):
    """Filters of documents. Visible characters are those other than white space."""

    min_chars: int = Field(10, ge=0, description="minimum visible characters (too_short)")
    max_chars: int = Field(10_000_000, ge=1, description="maximum characters (too_long): Kiwi holds it in memory")
    min_hangul_share: Share = Field(
        0.3,
        description="minimum share of Hangul syllables in letters and digits, without lone jamo (too_little_hangul)",
    )
    max_symbol_share: Share = Field(
        0.7, description="maximum share of symbols (neither letter nor digit) in visible characters (too_many_symbols)"
    )
    max_other_script_share: Share = Field(
        0.4, description="maximum share of scripts other than Hangul and Latin in visible characters (mixed_languages)"
    )
    max_word_chars: float = Field(250.0, gt=0, description="maximum average word length in characters (too_long_words)")
    max_repeated_line_share: Share = Field(
        0.374, description="maximum share of characters in repeated lines (repeated_lines)"
    )
    repetition_min_words: int = Field(50, ge=0, description="fewer words are not checked for repeated words, passages")
    max_top_ngram_shares: tuple[float, float, float] = Field(
        (0.42, 0.34, 0.28),
        description="maximum share of characters in the top n-gram of 2, 3, 4 words (repeated_words)",
    )
    max_repeated_ngram_shares: tuple[float, float, float, float, float, float] = Field(
        (0.3, 0.28, 0.25, 0.23, 0.21, 0.19), description="maximum share in repeated 5- to 10-grams (repeated_passages)"
    )
    max_boilerplate_share: Share = Field(
        0.3, description="maximum share of characters in lines of notices, cookie banners and menus (boilerplate)"
    )
    layout_min_lines: int = Field(5, ge=1, description="fewer lines are not checked for list_like and bullets")
    min_closed_line_share: Share = Field(0.062, description="minimum share of lines that end as a sentence (list_like)")
    max_bullet_share: Share = Field(0.9, description="maximum share of lines that begin with a bullet (bullets)")

    @property
    def max_record_bytes(self) -> int:
        """Maximum bytes of a record of a source: enough for `max_chars` as JSON escapes of 6 bytes each."""
        return max(LONGEST_RECORD, 6 * self.max_chars)


class DuplicateSettings(_Settings):
    """Removal of duplicates. A line ends at a line feed; a term is letters and digits in a row."""

    equal: bool = Field(True, description="of documents with equal text, keep the one with the smallest id")
    near: Share = Field(
        0.8, description="of documents with this Jaccard similarity of term 3-grams, keep the longest; 0: off"
    )
    near_min_terms: int = Field(10, ge=3, description="documents with fewer terms are not checked for near-duplicates")
    template_share: Share = Field(
        0.5, description="maximum share of common 5-grams (template_made), with all numbers taken as equal; 1: off"
    )
    template_documents: int = Field(50, ge=1, description="a 5-gram of terms is common if it occurs in more documents")
    template_min_terms: int = Field(30, ge=5, description="documents with fewer terms are not checked for templates")
    line_documents: int = Field(50, ge=0, description="remove lines that occur in more documents than this; 0: off")
    line_min_chars: int = Field(15, ge=1, description="lines with fewer visible characters are never removed")


class EvaluationSettings(_Settings):
    """An evaluation set, whose texts a model must not learn from."""

    name: str = Field(pattern=_NAME, description="in lower case, shown with the documents that contain its text")
    path: str = Field(min_length=1, description="a file, a folder or a glob, relative to the data folder")
    kind: SourceKind = Field("auto", description="as for a source")
    encoding: TextEncoding = Field("auto", description="as for a source")
    text: str = Field("text", description="field of the text (jsonl, tables)")

    def source(self) -> SourceSettings:
        """The settings that readers need."""
        return SourceSettings(id="", **self.model_dump())


class DecontaminationSettings(_Settings):
    """When a document is contaminated by an evaluation set. A term is letters and digits in a row."""

    terms: int = Field(8, ge=2, le=50, description="length of the n-grams in terms; sharing one is contamination")
    min_terms: int = Field(5, ge=2, description="shorter texts of a set, of this many terms or more, must match whole")
    min_chars: int = Field(15, ge=1, description="n-grams with fewer characters, without spaces, may be shared")
    unit: Literal["document", "line"] = Field("document", description="drop the document, or only the matching lines")

    @model_validator(mode="after")
    def check_lengths(self) -> Self:
        if self.min_terms > self.terms:
            raise ValueError(
                Message(
                    "min_terms {min_terms} is more than terms {terms}: make it that or less",
                    min_terms=self.min_terms,
                    terms=self.terms,
                )
            )
        return self


class CleanSettings(_Settings):
    """From source files to clean documents."""

    sources: tuple[SourceSettings, ...] = Field(min_length=1, description="text sources, read in this order")
    part_bytes: int = Field(32 * MIB, ge=1024, le=1 << 30, description="bytes of raw text per part")
    normalize: NormalizeSettings = NormalizeSettings()
    personal: PersonalSettings = PersonalSettings()
    filters: FilterSettings = FilterSettings()
    duplicates: DuplicateSettings = DuplicateSettings()
    evaluation: tuple[EvaluationSettings, ...] = Field((), description="sets whose text is removed from the corpus")
    decontamination: DecontaminationSettings = DecontaminationSettings()

    @model_validator(mode="after")
    def check_names(self) -> Self:
        names = [name for name, _ in self.patterns]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(
                Message(
                    "two sources or evaluation sets are named {name!r}: ids begin with the name, so give each its own",
                    name=repeated[0],
                )
            )
        return self

    @property
    def patterns(self) -> list[tuple[str, str]]:
        """Name and path of each source and each evaluation set."""
        entries: list[SourceSettings | EvaluationSettings] = [*self.sources, *self.evaluation]
        return [(entry.name, entry.path) for entry in entries]


class AnalyzeSettings(_Settings):
    """From documents to morphemes."""

    part_bytes: int = Field(2 * MIB, ge=1024, le=1 << 30, description="bytes of text per part")
    deadline_seconds: float = Field(
        900.0, gt=0, le=10_000_000, description="time limit of a part of part_bytes; a slower part is split in half"
    )
    user_words: str = Field("", description="a TSV file (form, tag, score) of words to add to Kiwi and to keep whole")
    options: AnalyzerOptions = AnalyzerOptions()


class HeldOut(BaseModel, frozen=True, extra="forbid"):
    """Held-out documents, used by neither vocabulary nor training."""

    seed: int = Field(0, ge=0, description="random seed")
    heldout_share: float = Field(
        0.01, gt=0, lt=1, description="share of documents that are held out, by hash of their id"
    )


class VocabSettings(VocabularySettings, HeldOut, frozen=True, extra="forbid"):
    """From morpheme counts to a tokenizer."""

    min_documents: int = Field(1, ge=1, description="(form, tag) pairs that occur in fewer documents are excluded")


class ShardSettings(_Settings, HeldOut):
    """From morphemes to training files."""

    part_bytes: int = Field(16 * MIB, ge=1024, le=1 << 30, description="bytes of (compressed) morpheme files per shard")
