"""Files of a task's messages, for its agent."""

from pathlib import Path

import pytest
from tests.builders import a_task

from passgate.tasks.errors import MeasurementError
from passgate.tasks.model.task import EvalTask

IMAGE = b"\x89PNG\x00\xff"


def asking(*blocks: tuple[str, str]) -> EvalTask:
    content = [{"type": kind, "value": value} for kind, value in blocks]
    return a_task(inputs={}, messages=[{"role": "user", "content": content}])


@pytest.fixture
def files(suites: Path) -> Path:
    (suites / "golden/docs").mkdir(parents=True)
    (suites / "golden/docs/a.md").write_text("of the suites\n")
    (suites / "golden/b.png").write_bytes(IMAGE)
    (suites.parent / "beside").mkdir()
    (suites.parent / "beside/a.md").write_text("beside them\n")
    return suites


async def test_the_agent_finds_the_files_of_the_messages(isolation: str, workbench_of, files: Path) -> None:
    names = ("golden/docs/a.md", "../beside/a.md", "golden/b.png")
    task = asking(("file", names[0]), ("text", "and"), ("file", names[1]), ("image", names[2]), ("file", names[0]))
    with workbench_of() as workbench:
        async with workbench.sandbox(task) as sandbox:
            assert tuple(sandbox.files) == names
            shown = [await sandbox.run(["cat", str(sandbox.files[name])], seconds=20) for name in names[:2]]
            assert [result.stdout for result in shown] == ["of the suites\n", "beside them\n"]
            assert sandbox.files[names[2]].read_bytes() == IMAGE
            assert sandbox.files[names[0]].parts[-3:] == ("golden", "docs", "a.md")
            assert sandbox.files[names[1]].name == "a.md"
            assert list(sandbox.workspace.iterdir()) == list(sandbox.scratch.iterdir()) == []


async def test_files_of_one_name_are_kept_apart(workbench_of, files: Path) -> None:
    (files.parent / "other").mkdir()
    (files.parent / "other/a.md").write_text("another\n")
    names = ("../beside/a.md", "../other/a.md", str(files / "golden/docs/a.md"))
    with workbench_of() as workbench:
        async with workbench.sandbox(asking(*(("file", name) for name in names))) as sandbox:
            texts = [sandbox.files[name].read_text() for name in names]
            assert texts == ["beside them\n", "another\n", "of the suites\n"]
            assert all(file.is_relative_to(sandbox.workspace.parent) for file in sandbox.files.values())


@pytest.mark.usefixtures("needs_bubblewrap")
async def test_no_command_can_change_them(workbench_of, files: Path) -> None:
    with workbench_of() as workbench:
        async with workbench.sandbox(asking(("image", "golden/b.png"))) as sandbox:
            image = sandbox.files["golden/b.png"]
            for command in (f"echo x > {image}", f"rm {image}", f"mv {image.parent} {image.parent}-gone"):
                assert (await sandbox.run(["sh", "-c", command], seconds=20)).exit_code != 0
            assert image.read_bytes() == IMAGE


@pytest.mark.parametrize("value", ["data:image/png;base64,AAAA", "https://host/a.png"])
async def test_images_that_are_no_files_need_none(workbench_of, value: str) -> None:
    with workbench_of() as workbench:
        async with workbench.sandbox(asking(("image", value))) as sandbox:
            assert sandbox.files == {}


async def test_a_file_that_is_gone_is_an_error(workbench_of, files: Path) -> None:
    what = r"the file golden/gone\.md of the task's messages cannot be read"
    with workbench_of() as workbench, pytest.raises(MeasurementError, match=what):
        async with workbench.sandbox(asking(("file", "golden/gone.md"))):
            pytest.fail("the trial must not begin")


async def test_a_folder_is_no_file(workbench_of, files: Path) -> None:
    what = "the file golden of the task's messages cannot be read"
    with workbench_of() as workbench, pytest.raises(MeasurementError, match=what):
        async with workbench.sandbox(asking(("file", "golden"))):
            pytest.fail("the trial must not begin")
