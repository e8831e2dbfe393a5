import pytest

from core.config import Settings, load_settings, save_settings
from core.errors import SettingsError


def test_settings_come_back_as_they_were(tmp_path):
    settings = Settings(model="/m.gguf", n_ctx=4096, temperature=0.7, theme="dark")
    save_settings(tmp_path, settings)
    assert load_settings(tmp_path) == settings
    assert (tmp_path / "settings.toml").stat().st_mode & 0o077 == 0
    assert "text_scale" not in (tmp_path / "settings.toml").read_text(), "defaults stay free to change"


def test_no_file_means_defaults(tmp_path):
    assert load_settings(tmp_path) == Settings()


def test_a_whole_number_is_a_good_float(tmp_path):
    (tmp_path / "settings.toml").write_text("temperature = 1")
    assert load_settings(tmp_path).temperature == 1


@pytest.mark.parametrize("text", ["x = 1", "n_ctx = true", "n_ctx = 10", "theme = 'pink'", "\xff", "[n_ctx]"])
def test_what_makes_no_sense_is_named(tmp_path, text):
    (tmp_path / "settings.toml").write_text(text, encoding="latin-1")
    with pytest.raises(SettingsError, match="setting"):
        load_settings(tmp_path)


def test_an_unwritable_folder_is_explained(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(SettingsError, match="cannot be created"):
        save_settings(tmp_path / "file", Settings())
