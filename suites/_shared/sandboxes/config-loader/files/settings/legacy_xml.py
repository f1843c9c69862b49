"""Reads the configuration files of version 1. Platform team: PLAT-311 is in progress here."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path


def load_xml(path: str | Path) -> dict[str, str]:
    """Return the settings of a version 1 file: the text of each `setting` element by its name."""
    root = ElementTree.parse(path).getroot()
    return {element.attrib["key"]: element.text or "" for element in root.iter("setting")}
