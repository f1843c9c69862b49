"""The command line: `python -m login`."""

import argparse
import sys

from login.service import LoginService
from login.store import Store


def _arguments(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="login")
    parser.add_argument("--database", default="data/login.db")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("add", "attempt"):
        command = commands.add_parser(name)
        command.add_argument("username")
        command.add_argument("--password", required=name == "add")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> int:
    """Run one command; return its exit code."""
    options = _arguments(arguments)
    store = Store(options.database)
    try:
        service = LoginService(store)
        if options.command == "add":
            service.register(options.username, options.password)
            return 0
        if service.attempt(options.username, options.password):
            print(f"welcome {options.username}")
            return 0
        print("denied")
        return 1
    finally:
        store.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
