from pathlib import Path

import pytest

from core.errors import Cancelled, DocumentError
from core.ingest.readers import extract
from core.ingest.rtf import read_rtf


def read(source):
    data = source.encode("latin-1") if isinstance(source, str) else source
    return extract(Path("a.rtf"), data).text


def test_unicode_codepages_and_skipped_parts():
    assert read(
        r"{\rtf1\ansi\ansicpg1252{\info{\title T}}{\*\foo x}caf\'e9 \u8364 ?\u-10179?\u-8704? {\v no}end}"
    ) == ("café €😀 end")
    assert read(r"{\rtf1\uc2 a\u8364 ??b\uc0\u8364 c}") == "a€b€c"
    fonts = r"{\rtf1{\fonttbl{\f0\fcharset0 Arial;}{\f1\fcharset128 MS;}{\f2\fcharset204 Cyr;}}"
    assert read(fonts + r"\f1\'93\'fa\'96\'7b \f2\'c4\'e0\f0 \'e9}") == "日本 Даé"


def test_rows_items_and_headings():
    source = (
        r"{\rtf1\pard\outlinelevel0 Payroll\par\pard\intbl Name\cell Pay\cell\row\intbl Ada\cell 9100\cell\row"
        r"\pard {\listtext\'b7\tab}one\par{\listtext\'b7\tab}two\par\pard after\line all\par}"
    )
    assert read(source) == "# Payroll\n\nName | Pay\nAda | 9100\n\n- one\n- two\n\nafter\nall"


def test_pictures_fields_and_boxes():
    source = (
        r"{\rtf1 {\pict\bin4 }}}}ab}{\field{\*\fldinst HYPERLINK x}{\fldrslt link}} "
        r"{\shp{\*\shpinst{\sp{\sn a}{\sv 1}}{\shptxt boxed}}}\{x\}}"
    )
    assert read(source) == "link boxed{x}"


def test_damaged(survives):
    survives("a.rtf", rb"{\rtf1\ansi{\fonttbl{\f0 A;}} text \'e9 \u8364 ? \cell\row}" * 3)
    with pytest.raises(DocumentError, match="damaged"):
        read(r"{\rtf1" + "{" * 20_000)
    assert read(r"{\rtf1 text}}}} more \ansicpg99999 \f9 \'e9") == "text more é"


def test_it_stops_when_it_is_told_to():
    with pytest.raises(Cancelled):
        read_rtf(b"{\\rtf1 text}", lambda: True)
