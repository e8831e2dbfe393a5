"""Two calls that benchmarks need of the model and the product never makes.

Saved KV can be *moved*: a block's KV depends on what stood before it when it was made, so that put elsewhere
it is not what prefilling would give, and answers change. llama.cpp turns the keys to their new positions
(K-shift) with the next decode. And a text can be *weighed*: how likely each of its tokens is after what is
live.
"""

import ctypes

import llama_cpp
import numpy as np
from numpy.typing import NDArray

from core.engine.llama import LlamaEngine
from core.engine.protocol import CancelFlag, Snapshot
from core.types import Tokens

_LIVE, _TEMPORARY = 0, 1


class ProbingEngine(LlamaEngine):
    """The same engine with more calls; all others are untouched by them."""

    @property
    def can_shift(self) -> bool:
        return self.can_cut and bool(llama_cpp.llama_memory_can_shift(self._memory))

    def load_moved(self, snapshot: Snapshot, made_at: int, start: int, n: int) -> bool:
        """Append a snapshot of ``n`` positions that was saved at ``made_at``, at ``start`` instead.

        ``start`` must be the length of the live sequence. False if it was refused; the live sequence is then
        as it was. What is live afterwards is no path: ``clear`` it before anything exact.
        """
        memory = self._memory
        pointer = snapshot.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
        read = llama_cpp.llama_state_seq_set_data(self._context, pointer, len(snapshot), _TEMPORARY)
        fits = (
            read == len(snapshot)
            and llama_cpp.llama_memory_seq_pos_min(memory, _TEMPORARY) == made_at
            and llama_cpp.llama_memory_seq_pos_max(memory, _TEMPORARY) == made_at + n - 1
        )
        if fits:
            if start != made_at:
                llama_cpp.llama_memory_seq_add(memory, _TEMPORARY, made_at, made_at + n, start - made_at)
            llama_cpp.llama_memory_seq_cp(memory, _TEMPORARY, _LIVE, start, start + n)
        llama_cpp.llama_memory_seq_rm(memory, _TEMPORARY, -1, -1)
        return bool(fits)

    def logits_after(self, tokens: Tokens, start: int) -> NDArray[np.float32]:
        """Logits behind each of ``tokens`` (one batch of them), float32 ``(n, n_vocab)``.

        ``start`` must be the length of the live sequence, which is as it was afterwards.
        """
        self.all_logits = True
        try:
            self.prefill(tokens, start, CancelFlag())
        finally:
            self.all_logits = False
        rows = [
            np.ctypeslib.as_array(llama_cpp.llama_get_logits_ith(self._context, n), (self._n_vocab,))
            for n in range(len(tokens))
        ]
        found = np.stack(rows)
        self.cut(start)
        return found
