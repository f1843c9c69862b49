"""The command line: `python -m cart ORDER.json`."""

import json
import sys
from pathlib import Path

from cart.invoices import invoice

if len(sys.argv) != 2:
    sys.exit("usage: python -m cart ORDER.json")
print(json.dumps(invoice(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))), indent=2))
