import itertools

import pytest
from PySide6.QtWidgets import QApplication

from app.theme import DARK, LIGHT, MIN_CONTRAST, TIER_COLOURS, Theme, contrast
from core.config import Settings
from core.types import Tier


@pytest.mark.parametrize("tokens", [LIGHT, DARK], ids=["light", "dark"])
def test_text_is_readable(tokens):
    inks = (tokens.text, tokens.muted, tokens.accent, tokens.danger)
    grounds = (tokens.background, tokens.surface, tokens.hover)
    for ink, ground in itertools.product(inks, grounds):
        assert contrast(ink, ground) >= MIN_CONTRAST, (ink, ground)
    assert contrast(tokens.on_accent, tokens.accent) >= MIN_CONTRAST
    assert contrast(tokens.text, tokens.mark) >= MIN_CONTRAST


def test_contrast_of_black_and_white():
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)


def test_tier_colours_are_the_agreed_ones():
    assert [TIER_COLOURS[t] for t in (Tier.LIVE, Tier.RAM, Tier.SSD, Tier.PREFILLED)] == [
        "#009E73",
        "#0072B2",
        "#56B4E9",
        "#E69F00",
    ]


def test_settings_choose_the_scheme_and_the_size(qapp):
    theme = Theme(Settings(theme="dark", text_scale=1.5))
    theme.apply()
    assert theme.tokens.background == DARK.background
    assert QApplication.font().pixelSize() == 20  # 13 px, half as large again
    theme.set_settings(Settings(theme="light"))
    assert theme.tokens.background == LIGHT.background
    assert QApplication.font().pixelSize() == 13


def test_kiosk_is_half_as_large_again(qapp):
    assert Theme(Settings(), kiosk=True).px(40) == 60
