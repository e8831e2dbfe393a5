import json

from core.store import answers
from core.types import Block


def test_round_trip(an_answer):
    answer, _ledger, _tokenizer = an_answer(Block.of("文字 and more"))
    assert answers.decode(answers.encode(answer)) == answer


def test_fields_that_an_older_version_did_not_write_take_their_defaults(an_answer):
    answer, _ledger, _tokenizer = an_answer(Block.of("text"))
    raw = json.loads(answers.encode(answer))
    del raw["metrics"]["ttft_ms"]
    assert answers.decode(json.dumps(raw)).metrics.ttft_ms == 0.0


def test_without_blocks_leaves_others_alone(an_answer):
    answer, _ledger, _tokenizer = an_answer(Block.of("text"))
    other = answers.without_blocks(answer, frozenset({"another"}))
    assert other.passages == answer.passages
    twice = answers.without_blocks(other, frozenset({Block.of("text").id}))
    assert twice.notes == (answers.REMOVED_NOTE,)
    assert twice.passages[0].block.text == ""
    assert twice.text == answer.text
