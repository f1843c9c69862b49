from catalog import open_catalog, search


def test_a_part_of_the_title_is_enough() -> None:
    assert search(open_catalog(), "Rye") == ["A Field of Rye", "Rye and Barley"]


def test_a_year_narrows_it_down() -> None:
    assert search(open_catalog(), "Rye", "1978") == ["A Field of Rye"]
