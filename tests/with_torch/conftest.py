"""The model of the tests of trainers, and rows sampled from it."""

from __future__ import annotations

import pytest

from trainers import group_rows, small_model


@pytest.fixture(scope="module")
def model():
    return small_model()


@pytest.fixture(scope="module")
def rows(model):
    return group_rows(model)
