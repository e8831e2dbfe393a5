"""Tokens of blocks, by tokenizer: tokenizing runs at 0.9 MB/s, reading them back at hundreds."""

from collections.abc import Mapping, Sequence

import numpy as np

from core.store.database import Database
from core.types import Tokens


class TokenCache:
    def __init__(self, db: Database) -> None:
        self._db = db

    def get(self, block_ids: Sequence[str], tokenizer_id: str) -> dict[str, Tokens]:
        """The tokens of those blocks that are cached: int32 ``(n,)`` each."""
        rows = self._db.rows_in(
            "SELECT block_id, tokens FROM block_tokens WHERE tokenizer_id = ? AND block_id IN (?*)",
            block_ids,
            before=[tokenizer_id],
        )
        return {block_id: np.frombuffer(blob, dtype="<i4").astype(np.int32) for block_id, blob in rows}

    def put(self, tokens: Mapping[str, Tokens], tokenizer_id: str) -> None:
        """Keep tokens of blocks. Blocks that no document holds (any more) are left out."""
        with self._db.write():
            self._db.run_many(
                "INSERT OR REPLACE INTO block_tokens (block_id, tokenizer_id, tokens)"
                " SELECT id, ?, ? FROM blocks WHERE id = ?",
                ((tokenizer_id, ids.astype("<i4").tobytes(), block_id) for block_id, ids in tokens.items()),
            )
