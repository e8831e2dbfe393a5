from core.ingest.extracted import cleaned, is_blank


def test_cleaned():
    assert cleaned("e\u0301\r\n\ud800\x00x\ufeff\fnext") == "é\nx\n\nnext"


def test_is_blank():
    assert is_blank(" .\n-")
    assert not is_blank("7")
    assert not is_blank("字")
    assert not is_blank("☐")
