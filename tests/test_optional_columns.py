"""Logprobs of a reference model and alternatives: recorded as given, checked, and carried along or absent."""

from __future__ import annotations

import pickle

import numpy as np
import pyarrow as pa
import pytest

import tokentape as tt

TOP = [{3: -0.1, 5: -2.5}, {4: -0.2}]


def played(**values: object) -> tt.Trajectory:
    trajectory = tt.Trajectory.from_prompt([1, 2], vocab_size=10)
    trajectory.act([3, 4], [-0.1, -0.2], **values)
    trajectory.reward = 1.0
    return trajectory


def both() -> tt.Trajectory:
    trajectory = played(reference_logprobs=[-0.3, -0.4], top_logprobs=TOP)
    trajectory.append([9])
    trajectory.act([5], [-0.5], reference_logprobs=[-0.6], top_logprobs=[{5: -0.5, 6: -1.0, 7: -1.5}])
    return trajectory


def batch_of(*trajectories: tt.Trajectory) -> tt.Batch:
    return tt.Batch.from_groups([tt.Group(list(trajectories), id="g")])


def floats(values: list[float]) -> list[float]:
    return np.float32(values).tolist()


def test_what_was_given_is_there():
    trajectory = both()
    assert trajectory.reference_logprobs.tolist() == floats([0, 0, -0.3, -0.4, 0, -0.6])
    tops = [[], [], [3, 5], [4], [], [5, 6, 7]]
    assert [list(token) for token in trajectory.top_logprobs] == tops
    assert list(trajectory.top_logprobs[2].values()) == floats([-0.1, -2.5])
    assert played().reference_logprobs is None
    assert played().top_logprobs is None


def test_forks_cuts_and_pickles_keep_them():
    trajectory = both()
    fork, twin = trajectory.fork(), pickle.loads(pickle.dumps(trajectory))
    assert twin.top_logprobs == fork.top_logprobs == trajectory.top_logprobs
    assert twin.reference_logprobs.tolist() == trajectory.reference_logprobs.tolist()
    fork.truncate(3)
    assert [list(token) for token in fork.top_logprobs] == [[], [], [3, 5]]
    assert fork.reference_logprobs.tolist() == floats([0, 0, -0.3])


def test_records_of_turns_bring_them_along():
    first = {"token_ids": [3, 4], "logprobs": [-0.1, -0.2], "reference_logprobs": [-0.3, -0.4], "top_logprobs": TOP}
    turn = {"token_ids": [5], "logprobs": [-0.5], "reference_logprobs": [-0.6], "top_logprobs": [{5: -0.5}]}
    prompts = ([1, 2], [1, 2, 3, 4, 9], [1, 2, 3, 8])
    records = [{"prompt_token_ids": prompt, **one} for prompt, one in zip(prompts, (first, turn, turn), strict=True)]
    whole, branch = tt.merge(records)
    assert whole.reference_logprobs.tolist() == floats([0, 0, -0.3, -0.4, 0, -0.6])
    assert [list(token) for token in whole.top_logprobs] == [[], [], [3, 5], [4], [], [5]]
    assert branch.reference_logprobs.tolist() == floats([0, 0, -0.3, 0, -0.6])
    assert [list(token) for token in branch.top_logprobs] == [[], [], [3, 5], [], [5]]
    del records[1]["top_logprobs"]
    with pytest.raises(tt.TrajectoryError, match="record 1: turn 1: no top_logprobs"):
        tt.merge(records)
    records[1]["top_logprobs"] = [5]
    with pytest.raises(tt.ArgumentError, match=r"record 1, top_logprobs: .* give one mapping"):
        tt.merge(records)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"reference_logprobs": [-0.1]}, "turn 0: 1 reference logprobs for 2 sampled ids"),
        ({"reference_logprobs": [-0.1, None]}, "token 1: the reference logprob NaN"),
        ({"reference_logprobs": [-0.1, 0.5]}, "token 1: the reference logprob 0.5 is above zero"),
        ({"top_logprobs": TOP[:1]}, "turn 0: top_logprobs of 1 tokens for 2 sampled ids"),
        ({"top_logprobs": [TOP[0], {}]}, "top_logprobs of token 1: no alternatives"),
        ({"top_logprobs": [TOP[0], {11: -0.1}]}, "top_logprobs of token 1, token 0: the id 11 is outside"),
        ({"top_logprobs": [TOP[0], {4: float("-inf")}]}, "top_logprobs of token 1, token 0: the logprob -inf"),
    ],
)
def test_wrong_values_are_refused(values: dict[str, object], words: str):
    trajectory = tt.Trajectory.from_prompt([1, 2], vocab_size=10)
    with pytest.raises(tt.TrajectoryError, match=words):
        trajectory.act([3, 4], [-0.1, -0.2], **values)
    assert (len(trajectory.token_ids), trajectory.stage) == (2, "prompted")


@pytest.mark.parametrize("values", [{"reference_logprobs": [-0.3]}, {"top_logprobs": [{5: -0.1}]}], ids=list)
def test_all_turns_have_them_or_none(values: dict[str, object]):
    (name,) = values
    trajectory = played()
    trajectory.append([9])
    with pytest.raises(tt.TrajectoryError, match=f"turn 1: {name}, though earlier turns have none"):
        trajectory.act([5], [-0.5], **values)
    trajectory = both()
    trajectory.append([9])
    with pytest.raises(tt.TrajectoryError, match="turn 2: no reference_logprobs, though earlier turns have it"):
        trajectory.act([5], [-0.5])
    with pytest.raises(tt.ArgumentError, match=r"top_logprobs: .*one mapping of ids to logprobs"):
        played(top_logprobs=[1, 2])


def test_tables_have_the_columns_only_where_rows_do(tmp_path):
    assert "ref_logprobs" not in batch_of(played()).column_names
    assert batch_of(played()).row(0).ref_logprobs is None
    batch = batch_of(both(), played())
    batch.validate()
    for suffix in ("arrow", "parquet"):
        batch.write(tmp_path / f"rows.{suffix}")
        again = tt.Batch.read(tmp_path / f"rows.{suffix}")
        again.validate()
        first, second = again.rows()
        assert first.ref_logprobs.tolist() == floats([0, 0, -0.3, -0.4, 0, -0.6])
        assert [token["ids"].tolist() for token in first.top_logprobs] == [[], [], [3, 5], [4], [], [5, 6, 7]]
        assert (second.ref_logprobs, second.top_logprobs) == (None, None)
        rows = tt.Batch.from_rows([row.to_dict() for row in again.rows()])
        assert rows.to_pyarrow().equals(batch.to_pyarrow())
    joined = tt.Batch.concat([batch_of(played()), batch])
    assert [row.ref_logprobs is None for row in joined.rows()] == [True, False, True]


def test_a_reader_checks_them():
    table = batch_of(both()).to_pyarrow()
    place = table.schema.get_field_index("ref_logprobs")
    for column, words in (
        (pa.array([[0.0] * 5], pa.large_list(pa.float32())), "`ref_logprobs` has 5 values, `token_ids` has 6"),
        (
            pa.array([[0.0, 0.0, 0.5, 0.0, 0.0, 0.0]], pa.list_(pa.float32())),
            "`ref_logprobs` is 0.5 at sampled token 2",
        ),
    ):
        with pytest.raises(tt.SchemaError, match=words):
            tt.Batch.from_arrow(table.set_column(place, "ref_logprobs", column)).validate()


def test_reference_logprobs_are_packed_and_never_filled():
    (packed,) = tt.pack(batch_of(both(), both()), token_budget=16)
    assert packed.ref_logprobs.tolist() == 2 * floats([0, 0, -0.3, -0.4, 0, -0.6])
    (without,) = tt.pack(batch_of(played()), token_budget=16)
    assert without.ref_logprobs is None
    with pytest.raises(tt.SchemaError, match="row 1 has no ref_logprobs while other rows have them"):
        tt.pack(batch_of(both(), played()), token_budget=16)
