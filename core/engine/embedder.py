"""Text to vectors, by a small encoder model on llama.cpp.

A block is longer than what such a model was trained to read, so it is embedded in windows of about
``WINDOW_TOKENS``, each a vector of its own; a block is as near to a question as its nearest window.
"""

import ctypes
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
import xxhash
from numpy.typing import NDArray

from core.engine import llama_backend
from core.engine.model_files import check_embedder, file_fingerprint
from core.errors import EngineError, ModelError
from core.types import Tokens

Vectors = NDArray[np.float32]
"""One text or window a row, each of length 1: float32 ``(n, n_dims)``."""

WINDOW_TOKENS = 126
"""With the marks at both ends four fill a batch. Longer ones find less, shorter ones take more memory."""
_BATCH_TOKENS = 512
_MOST_SEQUENCES = 16
_LEAST_CTX = WINDOW_TOKENS + 16
"""A window, the marks at its ends and what stands in front."""


@dataclass(frozen=True, slots=True)
class _Habits:
    """What a family of models wants, told by a part of the file's name."""

    part: str
    query_prefix: str
    passage_prefix: str
    """What they were trained to see in front."""
    means_it: float
    """Cosine from which on two texts have to do with each other: each family uses its own range."""


_FAMILIES = (
    _Habits("e5", "query: ", "passage: ", 0.82),
    _Habits("nomic", "search_query: ", "search_document: ", 0.6),
    _Habits("", "", "", 0.35),
)


class Embedder:
    """An encoder model; shared by the threads that embed, each through an ``EmbedderContext`` of its own."""

    def __init__(self, path: Path) -> None:
        """Load it. Raises ModelError where the file is no embedder or damaged."""
        header = check_embedder(path)
        habits = next(one for one in _FAMILIES if one.part in path.name.lower())
        self.n_ctx = min(header.n_ctx_train or _BATCH_TOKENS, _BATCH_TOKENS)
        if self.n_ctx < _LEAST_CTX:
            raise ModelError(
                f"{path.name} reads {self.n_ctx} tokens at a time; {_LEAST_CTX} are needed.",
                hint="Choose another embedder in the settings.",
            )
        llama_backend.start()
        llama_backend.recent_errors.clear()
        parameters = llama_cpp.llama_model_default_params()
        # Small, and the GPU is busy with the answer: no layer, no context and no batch goes there.
        parameters.n_gpu_layers = 0
        parameters.split_mode = llama_cpp.LLAMA_SPLIT_MODE_NONE
        parameters.main_gpu = -1
        self.model: Any = llama_cpp.llama_model_load_from_file(os.fsencode(path), parameters)
        if not self.model:
            raise ModelError(
                f"llama.cpp cannot load {path.name}.",
                hint="Choose another embedder in the settings.",
                details="\n".join(llama_backend.recent_errors),
            )
        self.n_dims = int(llama_cpp.llama_model_n_embd(self.model))
        self.query_prefix, self.passage_prefix = habits.query_prefix, habits.passage_prefix
        self.means_it = habits.means_it
        """Cosine from which on a block is taken for an answer though it holds no word of the question."""
        rule = f"windows of {WINDOW_TOKENS}, {self.query_prefix!r}, {self.passage_prefix!r}"
        self.id = xxhash.xxh3_64_hexdigest(file_fingerprint(path) + rule.encode())
        """Names the file and how texts are cut: vectors of another id mean nothing beside these."""
        vocab = llama_cpp.llama_model_get_vocab(self.model)
        self._vocab = vocab
        self._begin = int(llama_cpp.llama_vocab_bos(vocab))
        self._end = int(llama_cpp.llama_vocab_sep(vocab))

    def close(self) -> None:
        """Free it, after every context of it."""
        if self.model:
            llama_cpp.llama_model_free(self.model)
        self.model = None

    def tokenize(self, text: str) -> Tokens:
        data = text.encode()
        room = len(data) + 8
        buffer = (llama_cpp.llama_token * room)()
        n = llama_cpp.llama_tokenize(self._vocab, data, len(data), buffer, room, False, False)
        if n < 0:
            raise EngineError("The embedder refused a text.", details=f"{-n} tokens for {len(data)} bytes")
        return np.array(buffer[:n], dtype=np.int32)

    def framed(self, tokens: Tokens) -> Tokens:
        """With the marks that the model expects at both ends."""
        begin = [self._begin] if self._begin >= 0 else []
        end = [self._end] if self._end >= 0 else []
        return np.concatenate([np.array(begin, np.int32), tokens, np.array(end, np.int32)])


class EmbedderContext:
    """Embeds for one thread."""

    def __init__(self, embedder: Embedder, n_threads: int) -> None:
        self._embedder = embedder
        parameters = llama_cpp.llama_context_default_params()
        parameters.n_ctx = parameters.n_batch = parameters.n_ubatch = _BATCH_TOKENS
        parameters.n_seq_max = _MOST_SEQUENCES
        parameters.offload_kqv = parameters.op_offload = False
        parameters.kv_unified = True
        parameters.embeddings = True
        parameters.pooling_type = llama_cpp.LLAMA_POOLING_TYPE_MEAN
        parameters.n_threads = parameters.n_threads_batch = n_threads
        self._batch: Any = None
        self._context: Any = llama_cpp.llama_init_from_model(embedder.model, parameters)
        if not self._context:
            raise ModelError("llama.cpp cannot make a context for the embedder.")
        self._batch = llama_cpp.llama_batch_init(_BATCH_TOKENS, 0, 1)

    def close(self) -> None:
        """Free it; the object must not be used afterwards."""
        if self._context:
            llama_cpp.llama_batch_free(self._batch)
            llama_cpp.llama_free(self._context)
        self._context = self._batch = None

    def query(self, text: str) -> NDArray[np.float32]:
        """The vector of a question, float32 ``(n_dims,)``; what the model cannot read at once is left out."""
        tokens = self._embedder.tokenize(self._embedder.query_prefix + text)[: self._embedder.n_ctx - 2]
        vector: NDArray[np.float32] = self._encode([self._embedder.framed(tokens)])[0]
        return vector

    def passages(
        self, texts: Sequence[str], wait: Callable[[], None] = lambda: None
    ) -> tuple[Vectors, NDArray[np.int64]]:
        """The vectors of all windows of the texts, and of which text each one is, int64 ``(n,)``.

        ``wait`` is called before each batch of about 512 tokens; what it raises ends the call.
        """
        vectors: list[Vectors] = []
        owners: list[int] = []
        windows = ((owner, window) for owner, text in enumerate(texts) for window in self._windows(text))
        for batch in _batches(windows):
            wait()
            owners += [owner for owner, _ in batch]
            vectors.append(self._encode([window for _, window in batch]))
        if not vectors:
            return np.empty((0, self._embedder.n_dims), np.float32), np.empty(0, np.int64)
        return np.concatenate(vectors), np.array(owners, np.int64)

    def _windows(self, text: str) -> list[Tokens]:
        """The text in equal parts of at most ``WINDOW_TOKENS``, framed."""
        tokens = self._embedder.tokenize(text)
        n_windows = max(1, -(-len(tokens) // WINDOW_TOKENS))
        prefix = self._embedder.passage_prefix
        ahead = self._embedder.tokenize(prefix) if prefix else np.empty(0, np.int32)
        return [
            self._embedder.framed(np.concatenate([ahead, part])) for part in np.array_split(tokens, n_windows)
        ]

    def _encode(self, sequences: Sequence[Tokens]) -> Vectors:
        batch = self._batch
        at = 0
        for number, tokens in enumerate(sequences):
            n = len(tokens)
            stretch = slice(at, at + n)
            np.ctypeslib.as_array(batch.token, (_BATCH_TOKENS,))[stretch] = tokens
            np.ctypeslib.as_array(batch.pos, (_BATCH_TOKENS,))[stretch] = np.arange(n, dtype=np.int32)
            np.ctypeslib.as_array(batch.n_seq_id, (_BATCH_TOKENS,))[stretch] = 1
            np.ctypeslib.as_array(batch.logits, (_BATCH_TOKENS,))[stretch] = 1
            for index in range(at, at + n):
                batch.seq_id[index][0] = number
            at += n
        batch.n_tokens = at
        code = llama_cpp.llama_encode(self._context, batch)
        if code != 0:
            raise EngineError("The embedder could not read a text.", details=f"llama_encode returned {code}")
        found = np.empty((len(sequences), self._embedder.n_dims), np.float32)
        for number in range(len(sequences)):
            pointer = llama_cpp.llama_get_embeddings_seq(self._context, number)
            found[number] = np.ctypeslib.as_array(
                ctypes.cast(pointer, ctypes.POINTER(ctypes.c_float)), (self._embedder.n_dims,)
            )
        lengths = np.linalg.norm(found, axis=1, keepdims=True)
        found /= np.maximum(lengths, np.float32(1e-12))
        return found


def _batches(windows: Iterator[tuple[int, Tokens]]) -> Iterator[list[tuple[int, Tokens]]]:
    """As many windows in a row as one call of the model takes."""
    batch: list[tuple[int, Tokens]] = []
    n_tokens = 0
    for owner, window in windows:
        if batch and (n_tokens + len(window) > _BATCH_TOKENS or len(batch) == _MOST_SEQUENCES):
            yield batch
            batch, n_tokens = [], 0
        batch.append((owner, window))
        n_tokens += len(window)
    if batch:
        yield batch
