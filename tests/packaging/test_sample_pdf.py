import pypdfium2
import sample_pdf


def text_of_pages(data: bytes) -> list[str]:
    document = pypdfium2.PdfDocument(data)
    texts = []
    for page in document:
        text_page = page.get_textpage()
        texts.append(" ".join(text_page.get_text_bounded().split()))
        text_page.close()
        page.close()
    document.close()
    return texts


def test_the_committed_file_is_what_the_script_writes():
    assert sample_pdf.TARGET.read_bytes() == sample_pdf.document(sample_pdf.PAGES)


def test_its_text_reads_back_page_by_page():
    pages = text_of_pages(sample_pdf.TARGET.read_bytes())
    assert len(pages) == 3
    assert "€165 a night in cities of group A" in pages[1]
    assert "within 30 days of the last day" in pages[2]


def test_brackets_and_backslashes_are_text():
    assert text_of_pages(sample_pdf.document(("a (b) \\ c",)))[0].startswith("a (b) \\ c")
