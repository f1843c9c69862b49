from pathlib import Path

from settings.legacy_xml import load_xml


def test_settings_of_version_1(tmp_path: Path) -> None:
    file = tmp_path / "service.xml"
    file.write_text('<settings><setting name="port">80</setting></settings>')
    assert load_xml(file) == {"port": "80"}
