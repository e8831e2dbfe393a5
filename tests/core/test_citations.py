"""A citation stands where the words of a sentence stand in a passage, and nowhere else."""

from core.citations import cite
from core.types import Block, Passage, Place


def passage(text, number=1, page=None):
    place = Place(number, f"doc{number}.pdf", f"/docs/doc{number}.pdf", 0, 0, len(text), page)
    return Passage(Block.of(text), (place,), 1.0, "", 0)


RENT = passage("The monthly rent is 900 euro, payable on the first. The deposit is three months' rent.", 1, 4)
PETS = passage("Keeping dogs needs the landlord's written consent. Cats are allowed.", 2)


def test_a_supported_sentence_is_cited_with_document_page_and_quote():
    citations, sentences = cite("What?", "The monthly rent is 900 euro.", [PETS, RENT])
    assert len(citations) == 1
    assert citations[0].document == "doc1.pdf"
    assert citations[0].page == 4
    assert citations[0].number == 1
    assert citations[0].quote == "The monthly rent is 900 euro, payable on the first."
    assert sentences[0].citations == (1,)


def test_a_changed_figure_is_not_supported():
    citations, sentences = cite("What?", "The monthly rent is 950 euro.", [RENT])
    assert citations == ()
    assert sentences[0].citations == ()


def test_numbers_follow_first_use_and_passages_are_cited_once():
    answer = "Dogs need the landlord's written consent. The monthly rent is 900 euro. Cats are allowed."
    citations, sentences = cite("What?", answer, [RENT, PETS])
    assert [c.document for c in citations] == ["doc2.pdf", "doc1.pdf"]
    assert [s.citations for s in sentences] == [(1,), (2,), (1,)]
    assert [answer[s.start : s.end] for s in sentences][1] == "The monthly rent is 900 euro."


def test_what_no_passage_says_is_marked_as_such():
    citations, sentences = cite("What?", "The garden may be used by all tenants on Sundays.", [RENT, PETS])
    assert citations == ()
    assert len(sentences) == 1


def test_two_neighbouring_sentences_may_support_together():
    citations, _ = cite("What?", "Dogs need written consent but cats are allowed.", [PETS])
    assert citations[0].quote.startswith("Keeping dogs")
    assert citations[0].quote.endswith("allowed.")


def test_no_sentence_without_claims_and_no_passages_is_no_error():
    assert cite("", "", [RENT]) == ((), ())
    assert cite("What?", "Yes.", [])[0] == ()


def test_quotes_are_verbatim_in_other_scripts():
    chinese = passage("押金为三个月的租金。猫可以养。", 3)
    citations, _ = cite("What?", "押金为三个月的租金。", [chinese])
    assert citations[0].quote == "押金为三个月的租金。"


def test_a_single_word_needs_the_question_beside_it():
    assert cite("Which pets are allowed?", "Cats.", [PETS])[0][0].quote == "Cats are allowed."
    assert cite("What is the capital of France?", "Cats.", [PETS])[0] == ()


def test_words_about_the_answer_claim_nothing():
    citations, sentences = cite(
        "Are dogs allowed?", "The answer is: no.", [passage("No answer counts as yes.")]
    )
    assert citations == ()
    assert not sentences[0].claims


def test_a_denial_does_not_support_its_opposite():
    assert cite("What?", "The deposit is not three months' rent.", [RENT])[0] == ()
    assert cite("What?", "The deposit is three months' rent.", [RENT])[0] != ()
    strict = passage("Tenants may not keep dogs in the building.")
    assert cite("What?", "Tenants may keep dogs in the building.", [strict])[0] == ()
    assert cite("What?", "Tenants may not keep dogs in the building.", [strict])[0] != ()


def test_the_fragment_at_the_end_of_a_cut_answer_claims_nothing():
    answer = "Cats are allowed. The monthly rent is"
    citations, sentences = cite("What?", answer, [PETS, RENT], cut_off=True)
    assert [citation.document for citation in citations] == ["doc2.pdf"]
    assert [sentence.claims for sentence in sentences] == [True, False]


def test_who_does_what_is_not_mixed_up():
    repairs = passage(
        "The landlord keeps in repair the roof, the outside walls, the windows and the heating."
    )
    assert cite("What?", "The tenant keeps the roof in repair.", [repairs])[0] == ()
    assert cite("What?", "The landlord keeps the roof in repair.", [repairs])[0] != ()


def test_a_short_statement_is_not_pieced_together_from_two_sentences():
    repairs = passage("The landlord keeps the heating in repair. The tenant reports a fault in writing.")
    assert cite("What?", "The tenant keeps the heating in repair.", [repairs])[0] == ()
    rent = passage("The rent is 1,140 euro a month. The deposit is 1,710 euro.")
    assert cite("What?", "The deposit is 1,140 euro.", [rent])[0] == ()


def test_a_name_that_stands_word_for_word_answers_the_question():
    form = passage("Commission file number: 000-30653\n\nGalaxy Gaming, Inc.\n\n(Exact name of issuer)")
    citations, _ = cite("What is the name of the company?", "The company is Galaxy Gaming, Inc.", [form])
    assert citations[0].quote == "Galaxy Gaming, Inc."
    assert cite("What is the name of the company?", "The company is Gaming Galaxy Inc.", [form])[0] == ()
    assert (
        cite("Who repairs the roof?", "The tenant and the landlord repair the roof.", [RENT, PETS])[0] == ()
    )
