import pytest
import xxhash

from core.errors import Cancelled
from core.ingest.content_hash import hash_of


@pytest.mark.parametrize("n_bytes", [0, 1, 1 << 20, (1 << 20) + 7, 3 << 20])
def test_it_is_the_hash_of_all_bytes(tmp_path, n_bytes):
    data = bytes(range(251)) * (n_bytes // 251 + 1)
    path = tmp_path / "a"
    path.write_bytes(data[:n_bytes])
    assert hash_of(path) == xxhash.xxh3_128_hexdigest(data[:n_bytes])


def test_it_stops_and_says_what_cannot_be_read(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"x")
    with pytest.raises(Cancelled):
        hash_of(path, lambda: True)
    with pytest.raises(FileNotFoundError):
        hash_of(tmp_path / "b")
