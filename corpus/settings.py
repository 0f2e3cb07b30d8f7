"""What a recipe may say about the corpus stages. Bytes are of UTF-8 text unless said."""

from typing import Literal, Self

from pydantic import BaseModel, Field, model_validator

from korbert.tokenization.settings import AnalyzerOptions, VocabularySettings

__all__ = [
    "AnalyzeSettings",
    "CleanSettings",
    "DecontaminationSettings",
    "DuplicateSettings",
    "EvaluationSettings",
    "FilterSettings",
    "NormalizeSettings",
    "PersonalSettings",
    "ShardSettings",
    "SourceSettings",
    "VocabSettings",
]

MIB = 1 << 20
LONGEST_RECORD = 64 * MIB  # a longer one is dropped unread, however little of it is text

Kind = Literal["auto", "jsonl", "text", "csv", "tsv", "parquet", "arrow", "wikipedia", "korquad"]
Encoding = Literal["auto", "utf-8", "cp949", "euc-kr", "utf-16"]
_LARGEST = 1 << 31
_NAME = r"^[a-z0-9][a-z0-9_-]*$"


class _Settings(BaseModel, frozen=True, extra="forbid", allow_inf_nan=False):
    """What all settings of the corpus are: strict, and without numbers that no machine can count to."""

    @model_validator(mode="after")
    def _can_be_counted_to(self) -> Self:
        for name, value in self:
            if isinstance(value, int) and value > _LARGEST:
                raise ValueError(f"{name} is more than {_LARGEST:,}: lower it")
        return self


class SourceSettings(_Settings):
    """Where one kind of text comes from. Its name begins the id of each of its documents."""

    name: str = Field(pattern=_NAME, description="short name in lower case: wiki, reviews")
    path: str = Field(
        min_length=1,
        description="a file, a folder or a glob, relative to the data folder; sample:NAME; or an address, s3://, hf://",
    )
    kind: Kind = Field(
        "auto",
        description="auto: by the end of the file's name; arrow: of a `datasets` data set; korquad: its contexts",
    )
    encoding: Encoding = Field("auto", description="of lines and pages; auto: each file's, by its beginning")
    max_undecodable: float = Field(
        0.01, ge=0, le=1, description="a larger share of bytes that are no text in that encoding ends the run"
    )
    id: str = Field("id", description='field of the id (jsonl, tables); "": the line or row number is the id')
    text: str = Field("text", description="field of the text (jsonl, tables)")
    documents: Literal["line", "blank", "file"] = Field(
        "line", description="a document of a text file is a line, what stands between blank lines, or the whole file"
    )
    pairs: bool = Field(
        True,
        description="false: its documents are no texts in order (a comment a line), of which pretraining makes pairs",
    )


class NormalizeSettings(_Settings):
    """How text is made uniform. NFC is no choice: all later stages rely on it."""

    control: bool = Field(True, description="take out control characters other than line feed and tab")
    zero_width: bool = Field(
        True, description="take out invisible characters, marks of direction too, joiners inside emoji excepted"
    )
    spaces: bool = Field(
        True, description="fold white space inside lines to one space, blank lines to one, ends to none"
    )
    html: bool = Field(True, description="resolve entities (&amp;lt;), take out tags that were left over")
    max_repeats: int = Field(
        5,
        ge=0,
        description="longer runs of one jamo or punctuation mark (ㅋㅋㅋㅋㅋㅋㅋ, !!!!!!!) are cut to that; 0: none is",
    )


class PersonalSettings(_Settings):
    """Which personal data is replaced by the name of its kind, such as <이메일>."""

    email: bool = Field(True, description="e-mail addresses")
    phone: bool = Field(True, description="phone numbers")
    resident_number: bool = Field(True, description="resident registration numbers, by date and check digit")
    card: bool = Field(True, description="card numbers, by Luhn's rule")
    account: bool = Field(True, description="bank accounts beside a bank's name or the word for account")


class FilterSettings(_Settings):
    """Which documents are dropped. Visible characters are those that are not white space."""

    min_chars: int = Field(10, ge=0, description="fewer visible characters: too_short")
    max_chars: int = Field(
        10_000_000, ge=1, description="more characters: too_long; Kiwi holds a whole document in memory"
    )
    min_hangul_share: float = Field(
        0.3,
        ge=0,
        le=1,
        description="smaller share of Hangul syllables in letters and digits, lone jamo left out: too_little_hangul",
    )
    max_symbol_share: float = Field(
        0.7, ge=0, le=1, description="larger share of what is neither letter nor digit in them: too_many_symbols"
    )
    max_other_script_share: float = Field(
        0.4, ge=0, le=1, description="larger share of scripts other than Hangul and Latin in them: mixed_languages"
    )
    max_word_chars: float = Field(250.0, gt=0, description="more characters a word on average: too_long_words")
    max_repeated_line_share: float = Field(
        0.374, ge=0, le=1, description="larger share of characters in lines that stood before: repeated_lines"
    )
    repetition_min_words: int = Field(50, ge=0, description="texts of fewer words may repeat words and passages")
    max_top_ngram_shares: tuple[float, float, float] = Field(
        (0.42, 0.34, 0.28),
        description="larger share in the most frequent run of 2, 3, 4 words: repeated_words",
    )
    max_repeated_ngram_shares: tuple[float, float, float, float, float, float] = Field(
        (0.3, 0.28, 0.25, 0.23, 0.21, 0.19),
        description="share in repeats of 5 to 10 words: repeated_passages",
    )
    max_boilerplate_share: float = Field(
        0.3, ge=0, le=1, description="larger share of characters in lines about rights, cookies, menus: boilerplate"
    )
    layout_min_lines: int = Field(5, ge=1, description="texts of fewer lines may look like lists")
    min_closed_line_share: float = Field(
        0.062, ge=0, le=1, description="smaller share of lines that end as sentences do: list_like"
    )
    max_bullet_share: float = Field(
        0.9, ge=0, le=1, description="larger share of lines that begin with a bullet: bullets"
    )

    @property
    def max_record_bytes(self) -> int:
        """What a record of a source may have: room for `max_chars` as JSON escapes them, 6 bytes each, or for more."""
        return max(LONGEST_RECORD, 6 * self.max_chars)


class DuplicateSettings(_Settings):
    """What is said only once. A line is what stands between line feeds; a term is letters and digits in a row."""

    equal: bool = Field(True, description="of documents with equal text keep the one with the smallest id")
    near: float = Field(
        0.8,
        ge=0,
        le=1,
        description="keep the longest of documents whose runs of three terms are so similar (Jaccard); 0: all",
    )
    near_min_terms: int = Field(10, ge=3, description="documents of fewer terms have no near-duplicates")
    template_share: float = Field(
        0.5,
        ge=0,
        le=1,
        description="drop documents of whose runs of five terms more stand in many others, numbers aside; 1: none",
    )
    template_documents: int = Field(50, ge=1, description="a run that stands in more documents stands in many")
    template_min_terms: int = Field(30, ge=5, description="documents of fewer terms are of no template")
    line_documents: int = Field(
        50, ge=0, description="a line that stands in more documents is taken out of all; 0: none is"
    )
    line_min_chars: int = Field(
        15, ge=1, description="lines of fewer visible characters stay, however often they stand"
    )


class EvaluationSettings(_Settings):
    """Texts that a model will be judged by, and that it must not have learned from."""

    name: str = Field(pattern=_NAME, description="short name in lower case, shown where its text is found")
    path: str = Field(min_length=1, description="a file, a folder or a glob, relative to the data folder")
    kind: Kind = Field("auto", description="as of a source; korquad: the contexts of such a file")
    encoding: Encoding = Field("auto", description="as of a source")
    text: str = Field("text", description="field of the text (jsonl, tables)")

    def source(self) -> SourceSettings:
        """What the readers read it by."""
        return SourceSettings(
            name=self.name, path=self.path, kind=self.kind, encoding=self.encoding, id="", text=self.text
        )


class DecontaminationSettings(_Settings):
    """When text of an evaluation set counts as found. A term is letters and digits in a row."""

    terms: int = Field(8, ge=2, le=50, description="terms in a row that a document may not share with a longer text")
    min_terms: int = Field(
        5,
        ge=2,
        description="a text of that many terms or more, but fewer than a run, may not stand whole in a document",
    )
    min_chars: int = Field(15, ge=1, description="runs of fewer characters, spaces left out, are stock phrases")
    unit: Literal["document", "line"] = Field("document", description="what is dropped: all of it, or those lines")

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.min_terms > self.terms:
            raise ValueError(f"min_terms {self.min_terms} is more than terms {self.terms}: make it that or less")
        return self


class CleanSettings(_Settings):
    """From source files to clean documents."""

    sources: tuple[SourceSettings, ...] = Field(min_length=1, description="read in this order")
    part_bytes: int = Field(32 * MIB, ge=1024, le=1 << 30, description="bytes of raw text in one part")
    normalize: NormalizeSettings = NormalizeSettings()
    personal: PersonalSettings = PersonalSettings()
    filters: FilterSettings = FilterSettings()
    duplicates: DuplicateSettings = DuplicateSettings()
    evaluation: tuple[EvaluationSettings, ...] = Field((), description="sets that documents may share no text with")
    decontamination: DecontaminationSettings = DecontaminationSettings()

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        names = [name for name, _ in self.patterns]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(
                f"two sources or evaluation sets are named {repeated[0]!r}: ids begin with the name, "
                "so give each its own"
            )
        return self

    @property
    def patterns(self) -> list[tuple[str, str]]:
        """Name and path of each source and each evaluation set."""
        return [(one.name, one.path) for one in self.sources] + [(one.name, one.path) for one in self.evaluation]


class AnalyzeSettings(_Settings):
    """From documents to morphemes."""

    part_bytes: int = Field(2 * MIB, ge=1024, le=1 << 30, description="bytes of text in one part")
    deadline_seconds: float = Field(
        900.0,
        gt=0,
        le=10_000_000,
        description="what a part may take before it is halved; larger and smaller ones in proportion",
    )
    user_words: str = Field(
        "",
        description="a file of words that Kiwi is told of and the vocabulary keeps whole: form, tab, tag, tab, score",
    )
    options: AnalyzerOptions = AnalyzerOptions()


class VocabSettings(VocabularySettings, frozen=True, extra="forbid"):
    """From morpheme counts to a tokenizer."""

    min_documents: int = Field(1, ge=1, description="a form and tag found in fewer documents is not learned from")


class ShardSettings(_Settings):
    """From morphemes to training files."""

    part_bytes: int = Field(
        16 * MIB, ge=1024, le=1 << 30, description="bytes of morpheme files (as packed) that make one shard"
    )
