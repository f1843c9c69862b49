def test_notes():
    assert True
