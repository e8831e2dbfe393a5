"""A scope as a condition on document ids."""

import json

from core.types import Scope


def documents_in(scope: Scope) -> tuple[str, list[object]]:
    """``IN (…)`` for a column of document ids, and its parameters; empty text for everything.

    The ids go in as JSON, because a scope may name more documents than a statement may have variables.
    """
    if scope.collection_id is not None:
        return "IN (SELECT id FROM documents WHERE collection_id = ?)", [scope.collection_id]
    if scope.document_ids:
        return "IN (SELECT value FROM json_each(?))", [json.dumps(sorted(scope.document_ids))]
    return "", []
