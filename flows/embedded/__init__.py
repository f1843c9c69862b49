"""Prefect's API served inside of this process, for users who have no server of their own."""

from pathlib import Path
from typing import Final

NO_TLS: Final = Path(__file__).with_name("no_tls.pem")
"""A file with one certificate, whose key nobody has, for clients of the embedded server. Every Prefect client loads a
file of certificates, even for `http:`, and the usual one takes 25 ms.
"""
