"""What a trace calls proven is what the model does, for every model of benchmarks/proofs.py."""

from __future__ import annotations

import warnings

import pytest

from benchmarks.cases.truth import ERROR, RIGHT, SOUND, WRONG, Case
from benchmarks.proofs import Row, all_cases, judged

CASES = {case.name: case for case in all_cases()}
ROWS: dict[str, Row] = {}

pytestmark = pytest.mark.slow


def row_of(case: Case) -> Row:
    """Judged once per model; warnings of the libraries that the models come from are theirs."""
    if case.name not in ROWS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ROWS[case.name] = judged(case)
    return ROWS[case.name]


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_nothing_is_wrong_and_proven_and_nothing_fails(case: Case) -> None:
    row = row_of(case)
    assert row.verdict not in (WRONG, ERROR), f"{row.fault}: {row.sentence}"


@pytest.mark.parametrize(
    "case",
    [case for case in CASES.values() if case.ends != SOUND],
    ids=[case.name for case in CASES.values() if case.ends != SOUND],
)
def test_a_model_that_is_known_ends_as_it_should(case: Case) -> None:
    row = row_of(case)
    assert row.verdict in case.ends, f"{row.fault}: {row.sentence}"


def test_what_is_not_proven_says_why() -> None:
    silent = [row.name for row in map(row_of, CASES.values()) if row.status != "proven" and not row.sentence]
    assert silent == []


@pytest.mark.parametrize("line", ["between tokens", "from layer to layer", "around the layers", "the answer"])
def test_each_line_of_the_proof_has_tricks_and_honest_twins(line: str) -> None:
    tricks = [case for name, case in CASES.items() if name.startswith(f"{line}: ")]
    twins = [case for name, case in CASES.items() if name.startswith(f"{line}, honest: ")]
    assert min(len(tricks), len(twins)) >= 3
    assert {RIGHT} == set().union(*(case.ends for case in twins))
    assert RIGHT not in set().union(*(case.ends for case in tricks))


def test_at_least_sixty_module_classes_take_part() -> None:
    assert len({row_of(case).module for case in CASES.values()}) >= 60
