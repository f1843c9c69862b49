set -e
python - <<'PYTHON'
import json
from pathlib import Path

sizes = {
    name: sum(file.stat().st_size for file in Path(name).rglob("*") if file.is_file())
    for name in ("archive", "snapshots")
}
Path("usage.json").write_text(json.dumps(sizes) + "\n")
PYTHON
python -c "import os; [os.remove(os.path.join(p, f)) for p, _, n in os.walk('snapshots') for f in n]"
