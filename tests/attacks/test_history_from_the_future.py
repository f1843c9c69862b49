"""Tries: the rows of the history are of runs that cannot have been.

Must come: They are left out of the baseline, and a note counts them.
"""

import pyarrow as pa
import pyarrow.parquet as pq

from tests.attacks.conftest import Attacked


def test_history_from_the_future(attacked: Attacked) -> None:
    attacked.checkout("main")
    attacked.gate()
    for file in (attacked.path / ".passgate/history/trials").rglob("*.parquet"):
        rows = pq.read_table(file)
        place = rows.schema.get_field_index("trial")
        twice = rows.set_column(place, rows.schema.field(place), rows["trial"])
        pq.write_table(pa.concat_tables([twice, twice]), file)
    attacked.checkout("change")
    outcome = attacked.gate()
    assert outcome.code == 1, outcome.printed
    assert any("that cannot be genuine" in note for note in outcome.verdict["notes"])
