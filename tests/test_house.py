"""What the table of `make house` counts."""

import pytest
from tools import house

ONE = '''\
"""A module."""

from package.two import Large


class Record:  # explained below
    {fields}


def _once():
    import json

    return json


def _twice(): ...


print(_once(), _twice(), _twice(), Large)
'''
TWO = "class Large: ...\n\n\nclass Record: ...\n"


@pytest.fixture
def measured(tmp_path, monkeypatch):
    def measure(between):
        package = tmp_path / "src" / "package"
        package.mkdir(parents=True)
        fields = between.join(f"f{number}: int" for number in range(house.LARGE)) + between
        (package / "one.py").write_text(ONE.format(fields=fields))
        (package / "two.py").write_text(TWO)
        return house.measure([package])

    monkeypatch.setattr(house, "ROOT", tmp_path)
    return measure


def test_it_counts_what_it_says(measured):
    found = measured("\n    ")
    assert found.code == 7 + house.LARGE + 2
    assert (found.comments, found.functions) == (1, 2)
    assert found.importers == {"package.two": "package.one"}
    assert found.once == ["package.one._once"]
    assert len(found.inner) == 1
    assert found.shared == {"Record": ["package.one", "package.two"]}
    assert found.undocumented == found.records == ["package.one.Record"]


def test_a_text_below_each_field_documents_a_record(measured):
    found = measured('\n    """What it means."""\n    ')
    assert (found.records, found.undocumented) == (["package.one.Record"], [])
