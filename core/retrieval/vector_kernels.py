"""Nearness of a question to every vector, in whole numbers: a quarter of the memory, and of the time."""

import numpy as np
from numpy.typing import NDArray

from core.jit import kernel


@kernel("f4[::1](i1[:, ::1], f4[::1], i1[::1])")
def products(
    vectors: NDArray[np.int8], scales: NDArray[np.float32], query: NDArray[np.int8]
) -> NDArray[np.float32]:
    """Each row's product with the query, times the row's scale.

    Shapes: vectors ``(n, n_dims)``, scales ``(n,)``, query ``(n_dims,)``; float32 ``(n,)``.
    """
    n, n_dims = vectors.shape
    found = np.empty(n, np.float32)
    for row in range(n):
        total = np.int32(0)
        for index in range(n_dims):
            total += np.int32(vectors[row, index]) * np.int32(query[index])
        found[row] = np.float32(total) * scales[row]
    return found
