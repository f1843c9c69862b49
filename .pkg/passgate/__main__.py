"""`python -m passgate` is the `passgate` command."""

from passgate.flows.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
