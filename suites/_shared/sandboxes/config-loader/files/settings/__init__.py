"""Configuration from files and the environment."""

from settings.loader import SettingsError, load

__all__ = ["SettingsError", "load"]
