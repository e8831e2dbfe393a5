import numpy as np

from core.store.documents import DocumentStore, NewBlock, NewDocument
from core.store.token_cache import TokenCache
from core.types import Block


def test_tokens_are_kept_by_block_and_tokenizer(db):
    blocks = [Block.of(f"block {number}") for number in range(700)]
    new = tuple(NewBlock(block, 0, 1, 1) for block in blocks)
    DocumentStore(db).save(NewDocument("/a.txt", "a.txt", blocks=new))
    cache = TokenCache(db)
    tokens = {block.id: np.arange(number, dtype=np.int32) for number, block in enumerate(blocks)}
    cache.put({**tokens, "nobody holds this": np.arange(3, dtype=np.int32)}, "one")
    cache.put({blocks[0].id: np.array([7], dtype=np.int32)}, "two")
    found = cache.get([*tokens, "nobody holds this"], "one")
    assert found.keys() == tokens.keys()
    for block_id, ids in found.items():
        assert ids.dtype == np.int32
        np.testing.assert_array_equal(ids, tokens[block_id])
    assert cache.get(list(tokens), "two")[blocks[0].id].tolist() == [7]
    assert cache.get([], "one") == {}
