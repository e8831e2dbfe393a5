"""What the prefix cache and the pipeline need of a model, and nothing more.

``core.engine.llama`` is the real one. Tests drive the prefix cache with a fake that checks every call.
"""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from core.types import ModelInfo, Tokens

Logits = NDArray[np.float32]

Snapshot = NDArray[np.uint8]
"""The KV of one chunk as llama.cpp writes it, uint8 ``(n,)``; never changed once made."""


class CancelFlag:
    """Like ``threading.Event`` for stopping a question, in memory that native code can read."""

    def __init__(self) -> None:
        self.flag: NDArray[np.uint8] = np.zeros(1, np.uint8)
        """uint8 ``(1,)``, not 0 once set; its address stays valid as long as this object."""

    def set(self) -> None:
        self.flag[0] = 1

    def is_set(self) -> bool:
        return bool(self.flag[0])


class KVMemory(Protocol):
    """One live sequence of a model context. Positions count from 0 without gaps."""

    @property
    def n_ctx(self) -> int: ...

    @property
    def can_cut(self) -> bool:
        """False for recurrent and hybrid models: cleared, saved and loaded as a whole only, never in part."""

    def prefill(self, tokens: Tokens, start: int, cancel: CancelFlag) -> None:
        """Decode one chunk at positions ``start …``; leaves the logits of its last token.

        ``start`` must be the length of the live sequence. Raises Cancelled with the chunk taken back
        whole, EngineError with the whole memory cleared.
        """

    def decode(self, token: int, position: int, cancel: CancelFlag) -> None:
        """Decode one sampled token. Errors as ``prefill``."""

    def save(self, start: int, end: int) -> Snapshot | None:
        """The KV of positions ``start … end − 1``, or None where it could not be restored to the bit.

        Unless ``can_cut`` it must be the whole live sequence, from 0 on. Raises EngineError.
        """

    def load(self, snapshot: Snapshot, start: int, end: int) -> bool:
        """Append a snapshot at ``start``, the length of the live sequence (unless ``can_cut``: 0).

        False if it was refused; the live sequence is then as it was.
        """

    def cut(self, n: int) -> None:
        """Keep the first ``n`` positions. Only where ``can_cut``."""

    def clear(self) -> None: ...


class Engine(KVMemory, Protocol):
    """A loaded model: memory, tokenizer and next token."""

    @property
    def info(self) -> ModelInfo: ...

    @property
    def fingerprint(self) -> bytes:
        """Everything that decides the values in the KV cache, hashed (16 bytes)."""

    @property
    def memory_bytes(self) -> int:
        """What the model and its full context take, in bytes."""

    @property
    def tokenizer_id(self) -> str:
        """Names the vocabulary: equal ids give equal tokens for equal text."""

    @property
    def chat_template(self) -> str | None: ...

    def tokenize(self, text: str, *, special: bool) -> Tokens:
        """Tokens of a text. Only with ``special`` can text become control tokens; BOS is never added."""

    def begin_tokens(self) -> Tokens:
        """What the vocabulary wants in front of every prompt (BOS), or nothing."""

    def token_bytes(self, token: int) -> bytes: ...

    def is_end(self, token: int) -> bool:
        """True for end-of-generation and for every other control token: an answer holds none."""

    def token_text(self, name: str) -> str:
        """Text of the special token ``bos`` or ``eos``, for chat templates."""

    def logits(self) -> Logits:
        """Logits of the last decoded token, float32 ``(n_vocab,)``; valid until the next decode."""

    def close(self) -> None: ...
