"""What agents leave behind costs neither a verdict nor a trial."""

import textwrap

import pytest

from tests.gates import WRITES_OK, gate_of
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


CASES = [(what, isolated) for what in LEAVES for isolated in (True, False)]
QUICK = [("a tree deeper than a path can say", True), ("no folder to work in", False)]


@pytest.mark.parametrize(
    ("what", "isolated"),
    [pytest.param(*case, marks=[] if case in QUICK else pytest.mark.slow) for case in CASES],
)
def test_an_agent_that_has_done_its_work_passes_whatever_it_leaves(project: Project, what: str, isolated: bool) -> None:
    gate_of(project, k=2)
    project.write("suites/golden/a.yaml", WRITES_OK.format(name="a"))
    begin = "import os, shutil, socket\nopen('result.txt', 'w').write('ok')\n"
    agent = project.write("agent.py", begin + textwrap.dedent(LEAVES[what]))
    temporary = project.path / "temporary"
    temporary.mkdir()
    environment = {"TMPDIR": str(temporary)}
    if not isolated:
        project.write("bin/bwrap", "#!/bin/sh\nexit 1\n").chmod(0o755)
        environment["PATH"] = f"{project.path}/bin:{project.full_environment()['PATH']}"
    result = project.passgate("run", "ci_merge", "--agent", f"cli:python3 {agent}", **environment)
    assert result.returncode == 0, result.stdout + result.stderr
    assert [left for folder in temporary.iterdir() for left in folder.glob("*")] == []
