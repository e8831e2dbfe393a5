from oracles import cdc_weights_before

from core import cut_rules


def test_every_character_is_weighed_by_its_script():
    characters = [chr(code) for code in range(0x110000)]
    weights = [cdc_weights_before(character)[-1] for character in characters]
    assert [int(info) & cut_rules.WEIGHT for info in cut_rules.INFO] == weights
    assert [bool(info & cut_rules.GAP) for info in cut_rules.INFO] == [
        character.isspace() for character in characters
    ]
