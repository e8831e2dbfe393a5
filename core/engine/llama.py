"""llama.cpp through llama-cpp-python's low-level functions: the model that answers.

Rules that make results right to the bit (``core/ARCHITECTURE.md``, "Exactness"): one live sequence in a
unified cache, one chunk per batch, cuts at chunk ends only. ``Llama()`` is not used: it never sets
``kv_unified`` and decides by itself what to keep.
"""

import contextlib
import ctypes
import os
import re
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
import xxhash

from core import jit
from core.config import Settings
from core.engine import llama_backend
from core.engine.model_files import EMBEDDED_NOTE, check_model, embedded_model, file_fingerprint, total_memory
from core.engine.protocol import CancelFlag, Logits, Snapshot
from core.errors import Cancelled, EngineError, ModelError
from core.types import MAX_CHUNK_TOKENS, ModelInfo, Tokens

_SEQUENCE = 0
_TEMPORARY = 1
_ABORTED = 2  # llama_decode: stopped by the abort callback
_KV_TYPES = {"f16": 1, "q8_0": 8}  # ggml_type
_Q8_0_BYTES = 34 / 64
"""Bytes of a q8_0 value against one of f16: 32 values and a scale take 34 bytes."""
_TYPE_NAMES = {"bos": llama_cpp.llama_vocab_bos, "eos": llama_cpp.llama_vocab_eos}


class LlamaEngine:
    """A model and its context. Owned by one thread; satisfies ``core.engine.protocol.Engine``."""

    all_logits = False
    """For ``core.engine.probe``: a batch leaves the logits of all its tokens, not of the last one alone."""

    def __init__(self, path: Path, settings: Settings, cancel: CancelFlag | None = None) -> None:
        """Load a model. Raises ModelError with the reason if it cannot be loaded or does not fit, Cancelled
        if ``cancel`` was set meanwhile.
        """
        self._model: Any = None
        self._context: Any = None
        self._batch: Any = None
        header = check_model(path)
        n_ctx = min(settings.n_ctx, header.n_ctx_train or settings.n_ctx)
        kv_bytes = header.kv_bytes_per_token * (_Q8_0_BYTES if settings.kv_type == "q8_0" else 1.0)
        needed = header.size + int(n_ctx * kv_bytes)
        memory = total_memory()
        if memory and needed > memory:
            raise ModelError(
                f"The model and its context need {needed / 2**30:.1f} GiB; this machine has "
                f"{memory / 2**30:.1f} GiB of memory.",
                hint="Choose a smaller model, or a smaller n_ctx in the settings.",
            )
        self._memory_bytes = needed
        llama_backend.start()
        offload = bool(llama_cpp.llama_supports_gpu_offload())
        try:
            self._load_model(path, settings.n_gpu_layers if offload else 0, cancel or CancelFlag())
            self._open_context(
                n_ctx, settings.kv_type, settings.n_threads or physical_cores(), offload=offload
            )
            self._describe(path, n_ctx, offload=offload)
        except BaseException:
            self.close()
            raise

    def _load_model(self, path: Path, n_gpu_layers: int, cancel: CancelFlag) -> None:
        parameters = llama_cpp.llama_model_default_params()
        parameters.n_gpu_layers = n_gpu_layers if n_gpu_layers >= 0 else 10_000
        go_on = llama_cpp.llama_progress_callback(lambda _share, _data: not cancel.is_set())
        parameters.progress_callback = go_on
        llama_backend.recent_errors.clear()
        self._model = llama_cpp.llama_model_load_from_file(os.fsencode(path), parameters)
        if cancel.is_set():
            raise Cancelled
        if not self._model:
            raise ModelError(
                f"llama.cpp cannot load {path.name}.",
                hint="It may need a newer version of Slipstream, or be damaged: choose another file.",
                details="\n".join(llama_backend.recent_errors),
            )
        if llama_cpp.llama_model_has_encoder(self._model) or not llama_cpp.llama_model_has_decoder(
            self._model
        ):
            raise ModelError(
                f"{path.name} is not a chat model.", hint="Choose an instruction-tuned chat model."
            )
        self._vocab = llama_cpp.llama_model_get_vocab(self._model)
        self._n_vocab = int(llama_cpp.llama_vocab_n_tokens(self._vocab))

    def _open_context(self, n_ctx: int, kv_type: str, n_threads: int, *, offload: bool) -> None:
        parameters = llama_cpp.llama_context_default_params()
        parameters.n_ctx = n_ctx
        parameters.n_batch = parameters.n_ubatch = MAX_CHUNK_TOKENS
        # A second, temporary sequence for snapshots; unified, so that copying a range moves no data.
        parameters.n_seq_max = 2
        parameters.kv_unified = True
        # Sliding-window layers keep all their cells: then a cut or restored sequence is right to the bit,
        # which it is not without (logits 1.0 to 1.7 off on Gemma 3, and no call says so). It costs memory.
        parameters.swa_full = True
        parameters.flash_attn_type = llama_cpp.LLAMA_FLASH_ATTN_TYPE_ENABLED
        parameters.type_k = parameters.type_v = _KV_TYPES[kv_type]
        parameters.offload_kqv = offload
        parameters.n_threads = parameters.n_threads_batch = n_threads
        self._context = llama_cpp.llama_init_from_model(self._model, parameters)
        if not self._context:
            raise ModelError(
                "llama.cpp cannot make a context for this model.",
                hint="Try a smaller n_ctx in the settings.",
                details="\n".join(llama_backend.recent_errors),
            )
        self._memory = llama_cpp.llama_get_memory(self._context)
        self._batch = llama_cpp.llama_batch_init(MAX_CHUNK_TOKENS, 0, 1)
        # Native code that reads a byte: asked at every node of the graph, it must not wait for the GIL.
        self._abort_callback = ctypes.cast(jit.flag_callback(), llama_cpp.ggml_abort_callback)
        self._parameters = parameters

    def _attention(self) -> float:
        """4 · layers · width operations for each token before it, against two for each parameter."""
        n_params = int(llama_cpp.llama_model_n_params(self._model))
        width, n_layers = (
            int(of(self._model)) for of in (llama_cpp.llama_model_n_embd, llama_cpp.llama_model_n_layer)
        )
        return 2 * n_layers * width / n_params if n_params else 0.0

    def _describe(self, path: Path, n_ctx: int, *, offload: bool) -> None:
        buffer = ctypes.create_string_buffer(256)
        llama_cpp.llama_model_desc(self._model, buffer, len(buffer))
        system = (llama_cpp.llama_print_system_info() or b"").decode(errors="replace")
        device = "CPU"
        if offload:
            device = next((d for d in ("CUDA", "Metal", "MTL", "Vulkan") if d in system), "GPU").replace(
                "MTL", "Metal"
            )
        is_embedded = embedded_model() == path
        self._info = ModelInfo(
            name=path.stem,  # what the user calls it; the header's name is often a build's
            path=str(path),
            n_params=int(llama_cpp.llama_model_n_params(self._model)),
            n_ctx=n_ctx,
            device=device,
            note=EMBEDDED_NOTE if is_embedded else "",
            attention=self._attention(),
        )
        file = file_fingerprint(path)
        template = llama_cpp.llama_model_chat_template(self._model, None)
        self._template = template.decode(errors="replace") if template else None
        p = self._parameters
        maker = (
            file, llama_cpp.__version__, system, device, p.type_k, p.type_v, p.flash_attn_type, p.offload_kqv,
            p.rope_scaling_type, p.rope_freq_base, p.rope_freq_scale, p.swa_full, p.kv_unified, p.n_seq_max,
            p.n_ubatch, n_ctx,
        )  # fmt: skip
        self._fingerprint = xxhash.xxh3_128_digest(repr(maker).encode())
        # The vocabulary is a part of the file, so the file's name for it is exact; the library matters too.
        self._tokenizer_id = xxhash.xxh3_128_hexdigest(file + llama_cpp.__version__.encode())
        self._turn_markers = self._find_turn_markers()
        self._window = int(llama_cpp.llama_model_n_swa(self._model))
        self._can_cut = not (
            llama_cpp.llama_model_is_recurrent(self._model) or llama_cpp.llama_model_is_hybrid(self._model)
        )

    def _find_turn_markers(self) -> "re.Pattern[str] | None":
        """User-defined tokens that the chat template writes, or that end an answer."""
        if not self._template:
            return None
        texts = set()
        for token in range(self._n_vocab):
            if llama_cpp.llama_vocab_get_attr(self._vocab, token) & llama_cpp.LLAMA_TOKEN_ATTR_USER_DEFINED:
                text = (llama_cpp.llama_vocab_get_text(self._vocab, token) or b"").decode(errors="replace")
                ends = llama_cpp.llama_vocab_is_eog(self._vocab, token)
                if len(text) > 1 and not text.isspace() and (ends or text in self._template):
                    texts.add(text)
        return re.compile("|".join(map(re.escape, sorted(texts, key=len, reverse=True)))) if texts else None

    # --- what it is --------------------------------------------------------------------------------

    @property
    def info(self) -> ModelInfo:
        return self._info

    @property
    def n_ctx(self) -> int:
        return self._info.n_ctx

    @property
    def can_cut(self) -> bool:
        return self._can_cut

    @property
    def memory_bytes(self) -> int:
        return self._memory_bytes

    @property
    def fingerprint(self) -> bytes:
        return self._fingerprint

    @property
    def tokenizer_id(self) -> str:
        return self._tokenizer_id

    @property
    def chat_template(self) -> str | None:
        return self._template

    # --- tokens --------------------------------------------------------------------------------------

    def tokenize(self, text: str, *, special: bool) -> Tokens:
        if special or self._turn_markers is None:
            return self._tokenize(text, special=special)
        # llama.cpp looks for user-defined tokens even where special ones are off, and some models mark their
        # turns with them: such a marker is broken in two, so that contents cannot write one.
        pieces, start = [], 0
        for match in self._turn_markers.finditer(text):
            pieces.append(text[start : match.start() + 1])
            start = match.start() + 1
        pieces.append(text[start:])
        return np.concatenate([self._tokenize(piece, special=False) for piece in pieces])

    def _tokenize(self, text: str, *, special: bool) -> Tokens:
        data = text.encode()
        room = len(data) + 8  # no tokenizer makes more tokens than bytes, plus what it puts in front
        buffer = (llama_cpp.llama_token * room)()
        n = llama_cpp.llama_tokenize(self._vocab, data, len(data), buffer, room, False, special)
        if n < 0:
            raise EngineError("The tokenizer refused a text.", details=f"{-n} tokens for {len(data)} bytes")
        return np.array(buffer[:n], dtype=np.int32)

    def begin_tokens(self) -> Tokens:
        bos = int(llama_cpp.llama_vocab_bos(self._vocab))
        wanted = llama_cpp.llama_vocab_get_add_bos(self._vocab) and bos >= 0
        return np.array([bos] if wanted else [], dtype=np.int32)

    def token_bytes(self, token: int) -> bytes:
        buffer = ctypes.create_string_buffer(64)
        n = llama_cpp.llama_token_to_piece(self._vocab, token, buffer, len(buffer), 0, False)
        if n < 0:
            buffer = ctypes.create_string_buffer(-n)
            n = llama_cpp.llama_token_to_piece(self._vocab, token, buffer, len(buffer), 0, False)
        return buffer.raw[: max(0, n)]

    def is_end(self, token: int) -> bool:
        return bool(
            llama_cpp.llama_vocab_is_eog(self._vocab, token)
            or llama_cpp.llama_vocab_is_control(self._vocab, token)
        )

    def token_text(self, name: str) -> str:
        token = int(_TYPE_NAMES[name](self._vocab))
        text = llama_cpp.llama_vocab_get_text(self._vocab, token) if token >= 0 else None
        return text.decode(errors="replace") if text else ""

    # --- the live sequence -----------------------------------------------------------------------------

    def prefill(self, tokens: Tokens, start: int, cancel: CancelFlag) -> None:
        n = len(tokens)
        if not 0 < n <= MAX_CHUNK_TOKENS:
            raise EngineError("A prefill batch has a wrong size.", details=f"{n} tokens")
        batch = self._batch
        # Filled through NumPy views: one assignment instead of n ctypes stores.
        np.ctypeslib.as_array(batch.token, (n,))[:] = tokens
        np.ctypeslib.as_array(batch.pos, (n,))[:] = np.arange(start, start + n, dtype=np.int32)
        np.ctypeslib.as_array(batch.n_seq_id, (n,))[:] = 1
        wanted = np.ctypeslib.as_array(batch.logits, (n,))
        wanted[:] = self.all_logits
        wanted[n - 1] = 1
        for index in range(n):
            batch.seq_id[index][0] = _SEQUENCE
        batch.n_tokens = n
        self._decode(start, cancel)

    def decode(self, token: int, position: int, cancel: CancelFlag) -> None:
        self.prefill(np.array([token], dtype=np.int32), position, cancel)

    def _decode(self, start: int, cancel: CancelFlag) -> None:
        if cancel.is_set():
            raise Cancelled
        self._cancel = cancel  # keeps the flag's memory alive while llama.cpp reads it
        llama_cpp.llama_set_abort_callback(self._context, self._abort_callback, cancel.flag.ctypes.data)
        code = llama_cpp.llama_decode(self._context, self._batch)
        if code == 0:
            # A GPU is still computing: without this the time of a chunk would be told as that of the next.
            llama_cpp.llama_synchronize(self._context)
        if code == _ABORTED:
            if self._can_cut and llama_cpp.llama_memory_seq_rm(self._memory, _SEQUENCE, start, -1):
                raise Cancelled
            self.clear()
            raise Cancelled
        if code != 0:
            self.clear()
            raise EngineError(
                "llama.cpp could not read the prompt; its memory was cleared.",
                hint="Ask again. If it happens again, choose a smaller context in the settings.",
                details=f"llama_decode returned {code}\n" + "\n".join(llama_backend.recent_errors),
            )

    def logits(self) -> Logits:
        pointer = llama_cpp.llama_get_logits_ith(self._context, -1)
        return np.ctypeslib.as_array(pointer, (self._n_vocab,))

    def save(self, start: int, end: int) -> Snapshot | None:
        if 0 < self._window < end - start:
            return None  # it would leave out what lies outside the window: another layout, other bits
        if not self._can_cut:
            return self._write(_SEQUENCE)
        # A range is copied to the temporary sequence (bookkeeping only, the cache is unified), written, and
        # the sequence emptied again: while anything decodes there is one sequence only.
        llama_cpp.llama_memory_seq_cp(self._memory, _SEQUENCE, _TEMPORARY, start, end)
        try:
            return self._write(_TEMPORARY)
        finally:
            llama_cpp.llama_memory_seq_rm(self._memory, _TEMPORARY, -1, -1)

    def _write(self, sequence: int) -> Snapshot:
        size = int(llama_cpp.llama_state_seq_get_size(self._context, sequence))
        snapshot = np.empty(size, np.uint8)
        pointer = snapshot.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
        written = int(llama_cpp.llama_state_seq_get_data(self._context, pointer, size, sequence))
        if written != size or not size:
            raise EngineError(
                "A part of the model's memory could not be saved.", details=f"{written} of {size}"
            )
        return snapshot

    def load(self, snapshot: Snapshot, start: int, end: int) -> bool:
        pointer = snapshot.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
        memory = self._memory
        if not self._can_cut:
            # The state of a recurrent layer stands for all positions up to its last one.
            read = llama_cpp.llama_state_seq_set_data(self._context, pointer, len(snapshot), _SEQUENCE)
            last = llama_cpp.llama_memory_seq_pos_max(memory, _SEQUENCE)
            if read == len(snapshot) and last == end - 1:
                return True
            self.clear()
            return False
        read = llama_cpp.llama_state_seq_set_data(self._context, pointer, len(snapshot), _TEMPORARY)
        # A snapshot of another shape or place is refused: positions must be exactly those asked for.
        fits = (
            read == len(snapshot)
            and llama_cpp.llama_memory_seq_pos_min(memory, _TEMPORARY) == start
            and llama_cpp.llama_memory_seq_pos_max(memory, _TEMPORARY) == end - 1
        )
        if fits:
            llama_cpp.llama_memory_seq_cp(memory, _TEMPORARY, _SEQUENCE, start, end)
        llama_cpp.llama_memory_seq_rm(memory, _TEMPORARY, -1, -1)
        return bool(fits)

    def cut(self, n: int) -> None:
        if not self._can_cut or not llama_cpp.llama_memory_seq_rm(self._memory, _SEQUENCE, n, -1):
            self.clear()
            raise EngineError("The live sequence could not be cut; it was cleared.", details=f"at {n}")

    def clear(self) -> None:
        llama_cpp.llama_memory_clear(self._memory, True)

    def close(self) -> None:
        """Free everything; the object must not be used afterwards."""
        with contextlib.suppress(AttributeError):
            if self._batch is not None:
                llama_cpp.llama_batch_free(self._batch)
            if self._context:
                llama_cpp.llama_free(self._context)
            if self._model:
                llama_cpp.llama_model_free(self._model)
        self._batch = self._context = self._model = None


def physical_cores() -> int:
    """Cores to compute on: hyper-threads of one core only get in each other's way."""
    try:
        pairs = set()
        for cpu in os.sched_getaffinity(0):
            base = Path(f"/sys/devices/system/cpu/cpu{cpu}/topology")
            pairs.add(
                (base.joinpath("physical_package_id").read_text(), base.joinpath("core_id").read_text())
            )
        return max(1, len(pairs))
    except (OSError, AttributeError):
        return max(1, os.cpu_count() or 1)
