from pathlib import Path

import pytest

import settings


def test_values_have_types(tmp_path: Path) -> None:
    file = tmp_path / "service.conf"
    file.write_text("# service\nServer.Port = 80\ndebug = off\nname = 'shop'\n")
    assert settings.load(file) == {"server.port": 80, "debug": False, "name": "shop"}


def test_the_environment_goes_first(tmp_path: Path) -> None:
    file = tmp_path / "service.conf"
    file.write_text("server.port = 80\n")
    assert settings.load(file, {"APP_SERVER_PORT": "8080"}) == {"server.port": 8080}


def test_a_line_without_a_value_is_an_error(tmp_path: Path) -> None:
    file = tmp_path / "service.conf"
    file.write_text("port\n")
    with pytest.raises(settings.SettingsError, match="service.conf:1: expected"):
        settings.load(file)
