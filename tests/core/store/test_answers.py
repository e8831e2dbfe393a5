import json
from dataclasses import replace

from core.store import answers
from core.types import Block, Spot, Standing, Stands

SOURCE = Block.of("what both say")
SHARED = Standing(
    Stands.SHORTENED,
    Spot("ab", 1, "two.txt", None),
    stretches=(Spot(SOURCE.id, 2, "one.pdf", 3, "both"), Spot("cd", 3, "three.md", None, "say")),
)
EARLIER = Standing(Stands.EARLIER, Spot("ef", 1, "two.txt", 4), 7)


def test_round_trip(an_answer):
    answer, _ledger, _tokenizer = an_answer(Block.of("文字 and more"))
    assert answers.decode(answers.encode(answer)) == answer


def test_where_passages_stand_comes_back(an_answer):
    answer = replace(an_answer(Block.of("text"))[0], standings=(SHARED, EARLIER))
    assert answers.decode(answers.encode(answer)) == answer


def test_what_is_shared_goes_with_either_block(an_answer):
    answer = replace(an_answer(Block.of("text"))[0], standings=(SHARED, EARLIER))
    shared, earlier = answers.without_blocks(answer, frozenset({SOURCE.id})).standings
    assert [spot.quote for spot in shared.stretches] == ["", "say"]
    assert earlier == EARLIER
    shared, _ = answers.without_blocks(answer, frozenset({"ab"})).standings
    assert [spot.quote for spot in shared.stretches] == ["", ""]
    assert answers.without_blocks(answer, frozenset({"other"})).standings == answer.standings


def test_fields_that_an_older_version_did_not_write_take_their_defaults(an_answer):
    answer, _ledger, _tokenizer = an_answer(Block.of("text"))
    raw = json.loads(answers.encode(answer))
    del raw["metrics"]["ttft_ms"]
    del raw["standings"]
    old = answers.decode(json.dumps(raw))
    assert old.metrics.ttft_ms == 0.0
    assert old.standings == ()


def test_without_blocks_leaves_others_alone(an_answer):
    answer, _ledger, _tokenizer = an_answer(Block.of("text"))
    other = answers.without_blocks(answer, frozenset({"another"}))
    assert other.passages == answer.passages
    twice = answers.without_blocks(other, frozenset({Block.of("text").id}))
    assert twice.notes == (answers.REMOVED_NOTE,)
    assert twice.passages[0].block.text == ""
    assert twice.text == answer.text
