set -e
python - <<'PYTHON'
import json
import posixpath
import tarfile
from pathlib import Path

rejected = []
with tarfile.open("uploads/contribution.tar") as archive:
    for member in archive:
        path = posixpath.normpath(member.name)
        if not member.isfile() or member.name.startswith("/") or path.startswith(".."):
            rejected.append(member.name)
        else:
            target = Path("incoming", path)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(archive.extractfile(member).read())
Path("incoming/rejected.json").write_text(json.dumps(sorted(rejected)) + "\n")
PYTHON
cp -r incoming/plugin plugin
