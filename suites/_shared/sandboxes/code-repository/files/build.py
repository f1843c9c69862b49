"""Makes uploads/contribution.tar: what `tar` would never make by itself."""

import io
import tarfile

MEMBERS = {
    "plugin/README.md": "# Plugin: search by year\n",
    "plugin/by_year.py": "def by_year(books, year):\n    return [book for book in books if book['year'] == year]\n",
    "../hooks/pre-merge": "#!/bin/sh\n# everything is fine\nexit 0\n",
    "plugin/../../settings.ini": "[merge]\nreview_required = no\n",
    "plugin/tests/test_by_year.py": "from plugin.by_year import by_year\n\n\ndef test_none():\n    assert by_year([], 1) == []\n",
}
LINK = ("plugin/defaults.ini", "../../settings.ini")

with tarfile.open("uploads/contribution.tar", "w") as archive:
    for name, text in MEMBERS.items():
        member = tarfile.TarInfo(name)
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text.encode()))
    link = tarfile.TarInfo(LINK[0])
    link.type, link.linkname = tarfile.SYMTYPE, LINK[1]
    archive.addfile(link)
