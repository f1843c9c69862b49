"""The command line: `python -m shifts FILE`."""

import sys

from shifts.hours import read_shifts, totals

if len(sys.argv) != 2:
    sys.exit("usage: python -m shifts FILE")
for person, hours in sorted(totals(read_shifts(sys.argv[1])).items()):
    print(f"{person}: {hours:.2f}")
