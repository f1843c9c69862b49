"""What agents leave behind costs neither a verdict nor a trial."""

import textwrap

import pytest

from tests.cli.commands import told
from tests.gates import gate_of
from tests.project import Project

pytestmark = pytest.mark.slow

LEAVES = {
    "a tree deeper than a path can say": """
        for _ in range(1200):
            os.mkdir("deep")
            os.chdir("deep")
        """,
    "folders without permissions": """
        os.makedirs("a/b/c")
        for folder in ("a/b/c", "a/b", "a", "."):
            os.chmod(folder, 0)
        """,
    "no folder to work in": """
        for folder in ("workspace", "scratch", "home", "tmp"):
            shutil.rmtree(f"../{folder}", ignore_errors=True)
        os.mkdir("../workspace") if not os.path.exists("../workspace") else None
        open("../workspace/result.txt", "w").write("ok")
        """,
    "fifos, sockets and links in circles": """
        os.mkfifo("fifo")
        socket.socket(socket.AF_UNIX).bind("socket")
        os.symlink("loop", "loop")
        """,
}


@pytest.mark.parametrize("isolated", [True, False], ids=["isolated", "not isolated"])
@pytest.mark.parametrize("what", LEAVES)
def test_an_agent_that_has_done_its_work_passes_whatever_it_leaves(
    bare_project: Project, what: str, isolated: bool
) -> None:
    gate_of(bare_project, "a", k=2)
    begin = "import os, shutil, socket\nopen('result.txt', 'w').write('ok')\n"
    agent = bare_project.write("agent.py", begin + textwrap.dedent(LEAVES[what]))
    temporary = bare_project.path / "temporary"
    temporary.mkdir()
    bare_project.environment = {"TMPDIR": str(temporary), "PASSGATE_ENGINE": "none"}
    if not isolated:
        bare_project.write("bin/bwrap", "#!/bin/sh\nexit 1\n").chmod(0o755)
        bare_project.environment["PATH"] = f"{bare_project.path}/bin:{bare_project.full_environment()['PATH']}"
    told(bare_project, "run", "ci_merge", "--agent", f"cli:python3 {agent}")
    assert [left for folder in temporary.iterdir() for left in folder.glob("*")] == []
