"""Files of a task's messages, for its agent."""

from pathlib import Path

import pytest
from tests.builders import a_task
from tests.unit.sandboxes.conftest import cannot_begin

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


async def test_the_agent_finds_the_files_of_the_messages(isolation: str, sandbox_of, files: Path) -> None:
    names = ("golden/docs/a.md", "../beside/a.md", "golden/b.png")
    task = asking(("file", names[0]), ("text", "and"), ("file", names[1]), ("image", names[2]), ("file", names[0]))
    async with sandbox_of(task) as sandbox:
        assert tuple(sandbox.files) == names
        shown = [await sandbox.run(["cat", str(sandbox.files[name])], seconds=240) for name in names[:2]]
        assert [result.stdout for result in shown] == ["of the suites\n", "beside them\n"]
        assert sandbox.files[names[2]].read_bytes() == IMAGE
        assert sandbox.files[names[0]].parts[-3:] == ("golden", "docs", "a.md")
        assert sandbox.files[names[1]].name == "a.md"
        assert list(sandbox.workspace.iterdir()) == list(sandbox.scratch.iterdir()) == []


async def test_files_of_one_name_are_kept_apart(sandbox_of, files: Path) -> None:
    (files.parent / "other").mkdir()
    (files.parent / "other/a.md").write_text("another\n")
    names = ("../beside/a.md", "../other/a.md", str(files / "golden/docs/a.md"))
    async with sandbox_of(asking(*(("file", name) for name in names))) as sandbox:
        texts = [sandbox.files[name].read_text() for name in names]
        assert texts == ["beside them\n", "another\n", "of the suites\n"]
        assert all(file.is_relative_to(sandbox.workspace.parent) for file in sandbox.files.values())


@pytest.mark.usefixtures("needs_bubblewrap")
async def test_no_command_can_change_them(sandbox_of, files: Path) -> None:
    async with sandbox_of(asking(("image", "golden/b.png"))) as sandbox:
        image = sandbox.files["golden/b.png"]
        for command in (f"echo x > {image}", f"rm {image}", f"mv {image.parent} {image.parent}-gone"):
            assert (await sandbox.run(["sh", "-c", command], seconds=240)).exit_code != 0
        assert image.read_bytes() == IMAGE


@pytest.mark.parametrize("value", ["data:image/png;base64,AAAA", "https://host/a.png"])
async def test_images_that_are_no_files_need_none(sandbox_of, value: str) -> None:
    async with sandbox_of(asking(("image", value))) as sandbox:
        assert sandbox.files == {}


@pytest.mark.parametrize("name", ["golden/gone.md", "golden"])
async def test_what_is_no_file_that_is_there_is_an_error(workbench_of, files: Path, name: str) -> None:
    with workbench_of() as workbench:
        await cannot_begin(workbench, asking(("file", name)), f"the file {name} of the task's messages cannot be read")
