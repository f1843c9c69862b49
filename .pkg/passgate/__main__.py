"""`python -m passgate` is the `passgate` command."""

from passgate.flows.process.supervisor import main

if __name__ == "__main__":
    raise SystemExit(main())
