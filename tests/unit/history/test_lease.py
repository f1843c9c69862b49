"""Holders: who counts as alive."""

import os
import socket
import subprocess
from datetime import UTC, datetime, timedelta

import pytest

from passgate.tasks.history.lease import is_alive, new_holder


@pytest.mark.parametrize(("seconds", "alive"), [(60, True), (-1, False)])
def test_a_holder_on_another_machine_lives_until_it_expires(seconds: float, alive: bool) -> None:
    until = datetime.now(UTC) + timedelta(seconds=seconds)
    assert is_alive(new_holder(1).model_copy(update={"host": "elsewhere", "process": 7, "until": until})) is alive


@pytest.mark.parametrize("is_zombie", [False, True])
def test_one_whose_process_on_this_machine_has_ended_is_dead_at_once(is_zombie: bool) -> None:
    with subprocess.Popen(["true"]) as child:
        os.waitid(os.P_PID, child.pid, os.WEXITED | (os.WNOWAIT if is_zombie else 0))
        left = new_holder(3600).model_copy(update={"host": socket.gethostname(), "process": child.pid})
        assert not is_alive(left)
    assert is_alive(new_holder(3600))
