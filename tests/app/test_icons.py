import re

import pytest

from app.icons import FOLDER, app_icon, pixmap

NAMES = sorted(path.stem for path in FOLDER.glob("*.svg"))


@pytest.mark.parametrize("name", NAMES)
def test_every_icon_draws(qapp, name):
    image = pixmap(name, "#123456", 24, 2.0).toImage()
    assert (image.width(), image.height()) == (48, 48)
    assert any(image.pixelColor(x, y).alpha() > 200 for x in range(48) for y in range(48))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "slipstream"])
def test_one_set(name):
    source = (FOLDER / f"{name}.svg").read_text()
    assert 'viewBox="0 0 24 24"' in source
    assert re.search(r'stroke-width="1.7"', source)


def test_the_app_has_an_icon(qapp):
    assert not app_icon().isNull()


def test_every_icon_that_is_named_exists(qapp):
    used = set()
    for path in (FOLDER.parent.parent / "app").glob("*.py"):
        used |= set(re.findall(r'icon_name="([a-z-]+)"|IconButton\(theme, "([a-z-]+)"', path.read_text()))
    assert {one or other for one, other in used} <= set(NAMES)
