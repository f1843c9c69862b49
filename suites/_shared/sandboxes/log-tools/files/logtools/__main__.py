"""The command line: `python -m logtools LOG`."""

import dataclasses
import json
import sys

from logtools.summary import summarise

if len(sys.argv) != 2:
    sys.exit("usage: python -m logtools LOG")
print(json.dumps(dataclasses.asdict(summarise(sys.argv[1])), indent=2))
