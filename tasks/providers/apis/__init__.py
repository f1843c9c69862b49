"""The APIs that agents and providers speak."""
