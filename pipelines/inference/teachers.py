"""Teachers of vectors: models whose text vectors another encoder learns (`korbert distill`).

`write_teacher_vectors` computes their vectors once, cut to the size of the encoder, as a file that
`korbert finetune --kind embedding` reads.
"""

import hashlib
import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from http.client import HTTPException
from io import BytesIO
from itertools import chain, islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from korbert.errors import CorpusError, ModelError, ModelFailed, SettingsError
from korbert.folders import bundled
from korbert.model import Model
from korbert.names import is_litter
from korbert.pipelines.inference.embedding import TextEmbedder, Vectorizer, claim_parts, text_records, write_vectors
from korbert.pipelines.inference.input_records import InputResult
from korbert.system import needed_for, read_object, sha256_of, track, write_bytes_atomically
from korbert.vectors import to_unit_length

_Vectors = NDArray[np.float32]
_SERVER_TEXTS = 64  # of a request
_SERVER_SECONDS = 120  # to wait for its answer
_FITTED_TEXTS = 8_192  # that the axes of a cut are fitted on


def write_teacher_vectors(
    place: str,
    texts: Path,
    text: str | None,
    output: Path,
    size: int,
    failed: Callable[[InputResult], bool],
    device: str,
) -> None:
    """Writes the distinct texts of a file, and their vectors by the teacher at a place, to a .parquet file.

    text: column or key of the text; None: a usual one. size: of the vectors; longer ones are cut. failed: as in
    write_vectors. A file that was made from the same texts and teacher stays; an interrupted run resumes. SettingsError
    if there is another file.
    """
    if not texts.is_file():
        raise SettingsError("{texts}: is not a file: name one of texts", texts=texts)
    teacher = teacher_of(place, device)
    digest = teacher.digest()
    digest.update(f"{sha256_of(texts)} {text} {size}".encode())
    made_from = digest.hexdigest()
    if output.exists():
        recorded = b""
        with suppress(OSError, pa.ArrowException):  # raised by a file that is not Parquet
            recorded = (pq.read_schema(output).metadata or {}).get(b"made_from", b"")
        if recorded != made_from.encode():
            raise SettingsError(
                "{output}: holds the vectors of other texts or another teacher: remove it", output=output
            )
        for row in pq.read_table(output, columns=["line", "error"]).to_pylist():
            if row["error"] is not None:
                failed(row)
        return
    if not any("text" in row for row in _distinct(texts, text)):
        raise CorpusError("{texts}: holds no texts: nothing can be learned", texts=texts)
    if teacher(["."]).shape[1] > size:
        axes_file = claim_parts(output) / f"axes-{made_from[:32]}.npy"
        if not axes_file.exists():
            fitted_on = [row["text"] for row in islice(_distinct(texts, text), _FITTED_TEXTS) if "text" in row]
            buffer = BytesIO()
            np.save(buffer, principal_axes(teacher(fitted_on), size))
            write_bytes_atomically(axes_file, buffer.getvalue())
        teacher = Cut(teacher, np.load(axes_file))
    with track("teacher", None, "texts") as advance:
        write_vectors(teacher, _distinct(texts, text), output, failed, advance, made_from=made_from)


def _distinct(path: Path, text: str | None) -> Iterator[InputResult]:
    """Yields the records of a file, each text once. Memory holds a digest of each text."""
    seen = set[bytes]()
    for row in chain.from_iterable(text_records(path, path.name, text=text)):
        # 16 bytes a text, so that ten million texts take about a gigabyte, whatever their length.
        digest = hashlib.blake2b(row.get("text", "").encode("utf-8", "surrogatepass"), digest_size=16).digest()
        if "text" not in row or digest not in seen:
            seen.add(digest)
            yield row


def teacher_of(place: str, device: str) -> Vectorizer:
    """Returns the teacher at a place: a korbert model, one of sentence-transformers or `transformers`, or a server.

    place: "http://HOST:PORT/v1#MODEL" is a server with OpenAI's form of embeddings.
    """
    if place.startswith(("http://", "https://")):
        address, _, model = place.partition("#")
        if not model:
            raise SettingsError(
                "{place}: names no model of the server: write {address}#MODEL", place=place, address=address
            )
        return _Server(address.rstrip("/"), model)
    folder = Path(place)
    config = folder / "config.json"
    is_ours = bundled(folder) or not config.is_file() or "korbert_format" in read_object(config)
    if is_ours and not (folder / "modules.json").is_file():
        return TextEmbedder(Model.load(place, device), {})
    return _SentenceTransformer(folder, device)


def file_hashes(folder: Path) -> list[tuple[str, str]]:
    """Name and SHA-256 of every file of a model's folder, by name."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and not is_litter(path.name))
    return [(str(path.relative_to(folder)), sha256_of(path)) for path in files]


def principal_axes(vectors: _Vectors, size: int) -> _Vectors:
    """Returns the axes (D, size), strongest first, on which vectors keep their inner products as well as possible."""
    wide = vectors.astype(np.float64)
    # Not centred: inner products are kept, and not distances from the mean. eigh sorts ascending.
    _, axes = np.linalg.eigh(wide.T @ wide)
    return np.ascontiguousarray(axes[:, ::-1][:, :size], np.float32)


@dataclass(frozen=True)
class Cut:
    """A teacher whose vectors are cut to fewer dimensions, those of the axes: (D, size)."""

    teacher: Vectorizer
    axes: _Vectors

    def __call__(self, texts: list[str]) -> _Vectors:
        return to_unit_length(self.teacher(texts) @ self.axes)

    def digest(self) -> "hashlib._Hash":
        """That of the teacher: the axes may differ in the last bits from run to run, as the vectors do."""
        return self.teacher.digest()


@dataclass(frozen=True)
class _SentenceTransformer:
    folder: Path
    device: str

    @cached_property
    def _model(self) -> Any:
        with needed_for(f"{self.folder}: a teacher in this form"):
            from sentence_transformers import SentenceTransformer
        if not self.folder.is_dir():
            raise ModelError("{folder}: no such folder: name one with a model", folder=self.folder)
        return SentenceTransformer(str(self.folder), device=None if self.device == "auto" else self.device)

    def __call__(self, texts: list[str]) -> _Vectors:
        return np.asarray(self._model.encode(texts, normalize_embeddings=True, show_progress_bar=False), np.float32)

    def digest(self) -> "hashlib._Hash":
        return hashlib.sha256(json.dumps(file_hashes(self.folder)).encode())


class _SameOrigin(urllib.request.HTTPRedirectHandler):
    """Refuses redirects to another origin, which would get OPENAI_API_KEY."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        if urlsplit(req.full_url)[:2] != (target := urlsplit(newurl))[:2]:
            raise ModelError(
                "{full_url}: redirects to {origin:.200}, another origin, which neither texts nor "
                "OPENAI_API_KEY are sent to: name that address, if you trust it",
                full_url=req.full_url,
                origin=f"{target.scheme}://{target.netloc}",
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


@dataclass(frozen=True)
class _Server:
    address: str
    model: str

    def __call__(self, texts: list[str]) -> _Vectors:
        parts = []
        for start in range(0, len(texts), _SERVER_TEXTS):
            body = {"model": self.model, "input": texts[start : start + _SERVER_TEXTS]}
            headers = {"Content-Type": "application/json"}
            if key := os.environ.get("OPENAI_API_KEY"):  # as OpenAI's own clients
                headers["Authorization"] = f"Bearer {key}"
            request = urllib.request.Request(f"{self.address}/embeddings", json.dumps(body).encode(), headers)
            try:
                with urllib.request.build_opener(_SameOrigin).open(request, timeout=_SERVER_SECONDS) as answer:
                    data = json.load(answer)["data"]
                vectors = [row["embedding"] for row in sorted(data, key=lambda row: row["index"])]
                if len(vectors) != len(body["input"]):
                    raise ValueError(f"{len(vectors)} vectors for {len(body['input'])} texts")
                parts.append(np.array(vectors, np.float32))
            except (OSError, HTTPException, ValueError, KeyError, TypeError) as error:
                reason = error.read(200).decode(errors="replace") if isinstance(error, urllib.error.HTTPError) else ""
                raise ModelFailed(
                    "{address}: gave no vectors ({error!r:.200}{reason}): start it, or check address, model and "
                    "texts; the same command goes on with what is missing",
                    address=self.address,
                    error=error,
                    reason=reason and f": {reason}",
                ) from None
        return to_unit_length(np.concatenate(parts))

    def digest(self) -> "hashlib._Hash":
        return hashlib.sha256(f"{self.address} {self.model}".encode())
