from pathlib import Path

import pytest

from core.errors import Cancelled
from core.ingest.readers import extract
from core.ingest.tables import read_table


def read(data, name="a.csv"):
    return extract(Path(name), data)


def test_rows_stay_lines_whatever_parts_the_cells():
    assert read(b'Name,Pay\nAda,"9,100"\n').text == "Name | Pay\nAda | 9,100"
    assert read(b"Name;Pay\r\nAda;9,1\r\nBob;8,7\r\n").text == "Name | Pay\nAda | 9,1\nBob | 8,7"
    assert read(b"a\tb\nc, d\te\n", "a.tsv").text == "a | b\nc, d | e"
    assert read(b'a,b\n"two\nlines",c\n,,\n').text == "a | b\ntwo lines | c"
    assert read(b"only\none\n").text == "only\none"


def test_encodings():
    assert read("名前,年齢\n佐藤太郎,30\n髙橋淳,35\n".encode("cp932")).text.startswith(
        "名前 | 年齢\n佐藤太郎 | 30"
    )
    assert read("a,b\nä,ö\n".encode("utf-16")).text == "a | b\nä | ö"


def test_a_long_field_and_many_rows():
    assert len(read(b"a,b\n" + b"x" * 200_000 + b",c\n").text) == 200_000 + len("a | b\n | c")
    assert read(b"1,2\n" * 100_000).text.count("\n") == 99_999


def test_damaged(survives):
    survives("a.csv", b'a,"b\nc,d"\n"e,f\n')
    assert read(b'a,"b\n1,2\n3,4\n').text == 'a | "b\n1 | 2\n3 | 4'
    assert read(b'"a"b,c\n1,2\n').text == "ab | c\n1 | 2"


def test_it_stops_when_it_is_told_to():
    with pytest.raises(Cancelled):
        read_table(b"a,b\n1,2", lambda: True)
