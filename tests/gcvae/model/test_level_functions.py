"""Laws of functions between columns of codes: exact masses, and the table's share of exceptions."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch import Tensor

from gcvae.model.autoregressive_decoder import AutoregressiveDecoder
from gcvae.model.decoders import GenerativeModel
from gcvae.model.level_functions import FunctionStep, LevelFunction, by_decreasing_exceptions
from gcvae.numerics.generators import generator_for, uniform
from gcvae.training.assembly import build_model
from gcvae.training.calibration import calibrate
from gcvae.training.settings import configure, settle
from tests.gcvae.models import latents, levels, rows_of

COLUMNS = [levels(2, "a"), levels(3, "b"), levels(4, "c"), levels(6, "d")]
ROWS = rows_of(list(itertools.product(*(range(c.n_codes) for c in COLUMNS))))
CODES = ROWS.codes.numpy().astype(np.int64)

COARSE_BY_FINE = LevelFunction(1, (3,), np.array([[k, k % 3] for k in range(6)]), 0.1)
"""b comes before d: its parent is the last of them."""
FINE_BY_COARSE = LevelFunction(3, (1,), np.array([[0, 5], [1, 0], [2, 3]]), 0.1)
"""d comes after b."""
BY_TWO = LevelFunction(
    1, (0, 2), np.array([[a, c, (a + c) % 3] for a in range(2) for c in range(4)]), 0.1
)
"""b would come before c, and has to come after it."""
SEVERAL = LevelFunction(3, (2,), np.array([[0, 1], [0, 2], [1, 3], [2, 4], [3, 5]]), 0.1)
"""One code of c leaves d two."""
FUNCTIONS = [COARSE_BY_FINE, FINE_BY_COARSE, BY_TWO, SEVERAL]
BLANK_ROWS = np.repeat([[0, 0], [0, 2], [1, 0], [5, 1]], [30, 1, 6, 163], axis=0)
"""Blanks of d, then of b: of 31 blank d 30 have b blank, of 169 known ones six do."""
BLANKS = [
    LevelFunction.of_classes(columns, rows, np.array([[True, False], [not is_same, True]]))
    for columns, rows in (((3, 1), BLANK_ROWS), ((1, 3), BLANK_ROWS[:, ::-1]))
    for is_same in (True, False)
]


def model_with(*functions: LevelFunction, seed: int = 0) -> GenerativeModel:
    """Random weights, also in the layers that start at zero; float64."""
    settings = {"d_latent": 2, "d_hidden": 8, "d_sum": 8, "d_column": 6}
    config = settle(configure("default", settings), n_rows=100, n_columns=len(COLUMNS))
    model = build_model(config, COLUMNS, 0, functions).double()
    assert isinstance(model.decoder, AutoregressiveDecoder)
    torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.decoder.refinement.parameters():
            parameter.add_(0.5 * torch.randn_like(parameter))
    return model


def masses(model: GenerativeModel) -> Tensor:
    """p(row|z) of all rows at three z. Shape: (3, n)."""
    return model.conditional(latents(3)[:, None]).log_prob(ROWS, None).exp()


def keeps(function: LevelFunction) -> Tensor:
    """Which of all rows keep the function. Shape: (n,)."""
    pairs = {tuple(pair) for pair in function.pairs.tolist()}
    rows = function.classes(torch.from_numpy(CODES[:, list(function.columns)]), range(2))
    return torch.tensor([tuple(row) in pairs for row in rows.tolist()])


@pytest.mark.parametrize("function", BLANKS)
def test_blanks_of_one_column_follow_those_of_the_other(function: LevelFunction) -> None:
    """b comes before d: at a blank b and at a known one d has the share of the rows."""
    found = masses(model_with(function))
    torch.testing.assert_close(found.sum(-1), torch.ones(3).double(), atol=1e-9, rtol=0)
    is_same, by_d = len(function.pairs) == 2, function.column == 1
    known = {of_b: found[:, (CODES[:, 1] == 0) == of_b] for of_b in (True, False)}
    blank_d = {of_b: CODES[(CODES[:, 1] == 0) == of_b, 3] == 0 for of_b in (True, False)}
    share = {b: known[b][:, blank_d[b]].sum(-1) / known[b].sum(-1) for b in (True, False)}
    at_blank, at_known = torch.full((3,), 30.5 / 37).double(), torch.full((3,), 1.5 / 165).double()
    free = masses(model_with())
    of_free = {b: free[:, (CODES[:, 1] == 0) == b] for b in (True, False)}
    unconstrained = {
        b: of_free[b][:, blank_d[b]].sum(-1) / of_free[b].sum(-1) for b in (True, False)
    }
    is_constrained = {True: is_same or not by_d, False: is_same or by_d}
    for b, expected in ((True, at_blank), (False, at_known)):
        torch.testing.assert_close(share[b], expected if is_constrained[b] else unconstrained[b])


@pytest.mark.parametrize("columns", [(3, 1), (1, 3)])
def test_of_two_cells_only_one_has_a_value(columns: tuple[int, int]) -> None:
    rows = np.repeat([[0, 2], [1, 0], [5, 1]], [30, 168, 1], axis=0)
    rows = rows if columns == (3, 1) else rows[:, ::-1]
    for is_same in (True, False):
        allowed = np.array([[not is_same, True], [True, False]])
        function = LevelFunction.of_classes(columns, rows, allowed)
        found = masses(model_with(function))
        torch.testing.assert_close(found.sum(-1), torch.ones(3).double(), atol=1e-9, rtol=0)
        has_value = torch.from_numpy(CODES[:, [1, 3]] > 0)
        both, neither = found[:, has_value.all(1)].sum(-1), found[:, ~has_value.any(1)].sum(-1)
        assert (both < 0.05).all()
        assert not is_same or (neither < 0.05).all()


@pytest.mark.parametrize("columns", [(2, 3), (3, 2), (1, 2)])
def test_a_column_is_missing_where_another_has_certain_levels(columns: tuple[int, int]) -> None:
    """c decides whether the other column is missing: at its codes 1 and 3."""
    allowed = np.array([[False, True], [True, False], [False, True], [True, False]])
    rows = np.repeat([[0, 2], [1, 0], [2, 1], [3, 0]], [50, 30, 20, 40], axis=0)
    is_first = columns[0] == 2
    allowed, rows = (allowed, rows) if is_first else (allowed.T, rows[:, ::-1])
    function = LevelFunction.of_classes(columns, rows, allowed)
    found = masses(model_with(function))
    torch.testing.assert_close(found.sum(-1), torch.ones(3).double(), atol=1e-9, rtol=0)
    other = columns[1] if is_first else columns[0]
    is_kept = torch.from_numpy((CODES[:, other] == 0) == np.isin(CODES[:, 2], [1, 3]))
    assert (found[:, ~is_kept].sum(-1) < 0.03).all()
    names = [column.name for column in COLUMNS]
    assert LevelFunction.from_json(function.to_json(names), COLUMNS).class_counts is not None


@pytest.mark.parametrize("function", FUNCTIONS)
def test_masses_sum_to_one_and_those_of_exceptions_to_their_share(function: LevelFunction) -> None:
    found = masses(model_with(function))
    torch.testing.assert_close(found.sum(-1), torch.ones(3).double(), atol=1e-9, rtol=0)
    broken = found[:, ~keeps(function)].sum(-1)
    torch.testing.assert_close(
        broken, torch.full((3,), 0.1, dtype=torch.float64), atol=1e-9, rtol=0
    )


def test_two_functions_of_one_column_leave_the_masses_one() -> None:
    found = masses(model_with(FINE_BY_COARSE, SEVERAL))
    torch.testing.assert_close(found.sum(-1), torch.ones(3).double(), atol=1e-9, rtol=0)
    broken = found[:, ~keeps(SEVERAL)].sum(-1)
    torch.testing.assert_close(
        broken, torch.full((3,), 0.1, dtype=torch.float64), atol=1e-9, rtol=0
    )


def test_a_relation_leaves_a_sharper_function_its_share() -> None:
    """At b = 1 d is 0 by the function, which the relation with a leaves hardly any mass."""
    sharp = LevelFunction(3, (1,), FINE_BY_COARSE.pairs, 0.001)
    relation = LevelFunction(3, (0,), np.array([[0, 3], [0, 5], [1, 2], [1, 3]]), 0.05)
    model = model_with(*by_decreasing_exceptions([sharp, relation]))
    found = masses(model)
    torch.testing.assert_close(found.sum(-1), torch.ones(3).double(), atol=1e-9, rtol=0)
    of_one = CODES[:, 1] == 1
    broken = found[:, of_one & ~keeps(sharp).numpy()].sum(-1) / found[:, of_one].sum(-1)
    torch.testing.assert_close(broken, torch.full_like(broken, 0.001), atol=1e-9, rtol=0)
    assert [function.exceptions for function in model.decoder.functions] == [0.05, 0.001]


@pytest.mark.parametrize("function", [*FUNCTIONS, *BLANKS])
def test_walking_column_by_column_gives_the_same_masses(function: LevelFunction) -> None:
    model, z = model_with(function), latents(len(ROWS))
    noise = uniform((1, len(ROWS), len(COLUMNS)), generator_for(0, "noise"), torch.float64)
    walked = model.decoder.row_likelihoods()(ROWS, z[None], noise)[0]
    expected = model.conditional(z).log_prefixes(ROWS)
    torch.testing.assert_close(walked, expected, atol=1e-9, rtol=0)


@pytest.mark.parametrize("function", [*FUNCTIONS, *BLANKS])
@pytest.mark.parametrize("least", [1e-3, 0.0])
def test_masses_that_add_up_to_anything_give_the_same(
    function: LevelFunction, least: float
) -> None:
    """With the smallest some sides have no mass at all."""
    step = model_with(function).decoder.refinement.function_steps[0]
    given = torch.from_numpy(CODES[:, step.given])
    torch.manual_seed(0)
    beta = torch.randn(len(given), COLUMNS[step.last].n_codes, dtype=torch.float64).softmax(-1)
    beta = torch.where(beta < 0.1, least * beta, beta)
    expected = step(beta.log().log_softmax(-1), given).exp()
    found = step.masses(7.0 * beta, given)
    torch.testing.assert_close(found / found.sum(-1, keepdim=True), expected)


def demanded(function: LevelFunction) -> LevelFunction:
    return LevelFunction(function.column, function.parents, function.pairs, 0.0)


@pytest.mark.parametrize("function", [demanded(function) for function in FUNCTIONS])
def test_no_row_breaks_a_function_that_is_demanded(function: LevelFunction) -> None:
    model = model_with(function)
    found = masses(model)
    assert (found[:, ~keeps(function)] == 0.0).all()
    torch.testing.assert_close(found.sum(-1), torch.ones(3).double(), atol=1e-9, rtol=0)
    kept = ROWS.take(keeps(function).nonzero()[:, 0])
    model.conditional(latents(len(kept))).log_prob(kept, None).sum().backward()
    gradients = [p.grad for p in model.decoder.parameters() if p.grad is not None]
    assert gradients
    assert all(bool(torch.isfinite(gradient).all()) for gradient in gradients)


@pytest.mark.parametrize("function", [*FUNCTIONS, *BLANKS])
def test_the_gradient_is_that_of_the_masses(function: LevelFunction) -> None:
    step = model_with(function).decoder.refinement.function_steps[0]
    given = torch.from_numpy(CODES[::7, step.given])
    torch.manual_seed(0)
    logits = torch.randn(len(given), COLUMNS[step.last].n_codes + 1, dtype=torch.float64)

    def log_masses(logits: Tensor) -> Tensor:
        found: Tensor = step(torch.log_softmax(logits, dim=-1), given)
        return found

    assert torch.autograd.gradcheck(log_masses, logits.requires_grad_(), fast_mode=True)


@pytest.mark.parametrize("function", [*FUNCTIONS, *BLANKS, *(demanded(f) for f in FUNCTIONS)])
def test_a_cell_has_the_mass_that_its_code_has_among_all(function: LevelFunction) -> None:
    step = model_with(function).decoder.refinement.function_steps[0]
    torch.manual_seed(0)
    logits = torch.randn(2, len(CODES), COLUMNS[step.last].n_codes + 1, dtype=torch.float64)
    own, kept = torch.from_numpy(CODES[:, step.last]), keeps(function)
    for rows in (torch.arange(len(CODES)), kept.nonzero()[:, 0]):
        beta = logits[:, rows].log_softmax(-1).requires_grad_()
        given = torch.from_numpy(CODES[:, step.given])[rows]
        found = step.log_prob(beta, given, own[rows])
        expected = step(beta, given).gather(-1, own[rows].expand(2, -1)[..., None]).squeeze(-1)
        torch.testing.assert_close(found, expected)
        weights = torch.isfinite(expected).double()
        gradients = [
            torch.autograd.grad((x * weights).nan_to_num(neginf=0.0).sum(), beta, retain_graph=True)
            for x in (found, expected)
        ]
        torch.testing.assert_close(*gradients)


def test_a_side_without_probability_leaves_the_other_as_it_is() -> None:
    step = model_with(FINE_BY_COARSE).decoder.refinement.function_steps[0]
    log_beta = torch.full((1, 6), -torch.inf).index_fill(1, torch.tensor([2]), 0.0)
    assert torch.equal(step(log_beta, torch.tensor([[0]])), log_beta)
    far = torch.tensor([[-200.0, -300.0, -400.0, -500.0, -600.0, -700.0]]).log_softmax(-1)
    found = step(far, torch.tensor([[0]])).exp()
    assert found[0, 5] == pytest.approx(0.9, abs=1e-4)
    assert found[0, :5].sum() == pytest.approx(0.1, abs=1e-4)


def test_drawn_rows_break_a_function_in_the_share_of_its_exceptions() -> None:
    for function in FUNCTIONS:
        model = model_with(function).float()
        with torch.no_grad():
            codes, _ = model.sample(20_000, generator_for(0, "draws"))
        pairs = {tuple(pair) for pair in function.pairs.tolist()}
        drawn = codes[:, list(function.columns)].tolist()
        broken = sum(tuple(row) not in pairs for row in drawn) / len(drawn)
        assert broken == pytest.approx(0.1, abs=0.008)


def test_a_missing_cell_keeps_its_probability() -> None:
    function = LevelFunction(3, (1,), np.array([[0, 5], [1, 1], [2, 3]]), 0.1, has_missing=True)
    is_missing = CODES[:, 3] == 0
    with_function, without = masses(model_with(function)), masses(model_with())
    torch.testing.assert_close(with_function[:, is_missing], without[:, is_missing])
    assert not torch.allclose(with_function[:, ~is_missing], without[:, ~is_missing])
    torch.testing.assert_close(with_function.sum(-1), torch.ones(3).double(), atol=1e-9, rtol=0)


def test_parents_of_which_nothing_is_known_leave_the_column_as_it_is() -> None:
    pairs = np.array([[0, 5], [1, 0]])
    some = LevelFunction(3, (1,), pairs, 0.1)
    is_free = CODES[:, 1] == 2
    with_function, without = masses(model_with(some)), masses(model_with())
    torch.testing.assert_close(with_function[:, is_free], without[:, is_free])
    assert not torch.allclose(with_function[:, ~is_free], without[:, ~is_free])


def test_calibration_keeps_the_share_of_exceptions() -> None:
    model = model_with(FINE_BY_COARSE).float()
    counts = [torch.ones(c.n_codes, dtype=torch.long) * 1000 // c.n_codes for c in COLUMNS]
    calibrate(model, counts, seed=0)
    with torch.no_grad():
        codes, _ = model.sample(20_000, generator_for(0, "draws"))
    broken = masses(model.double())[:, ~keeps(FINE_BY_COARSE)].sum(-1)
    torch.testing.assert_close(broken, torch.full((3,), 0.1).double(), atol=1e-6, rtol=0)
    shares = torch.bincount(codes[:, 1].long()) / len(codes)
    torch.testing.assert_close(shares, torch.full((3,), 1 / 3), atol=0.02, rtol=0)


# Counting


def test_a_row_is_an_exception_if_the_others_do_not_foretell_it() -> None:
    rows = np.repeat(
        [[0, 1], [0, 2], [1, 0], [2, 3], [3, 1], [3, 2]], [97, 3, 50, 1, 20, 10], axis=0
    )
    found = LevelFunction.fit([4, 7], rows)
    assert (found.parents, found.column) == ((4,), 7)
    # The three are too few of a hundred; a third of the rows is a second value; one row foretells
    # its own code, and is not counted.
    assert found.pairs.tolist() == [[0, 1], [1, 0], [2, 3], [3, 1], [3, 2]]
    assert found.exceptions == pytest.approx(3.5 / 181)


def test_a_function_that_all_rows_keep_has_exceptions_in_scores_and_none_in_generated_rows() -> (
    None
):
    rows = np.array([[k, k % 3] for k in range(6)] * 4)
    exact, broken = (LevelFunction.fit([3, 1], r) for r in (rows, np.append(rows, [[0, 1]], 0)))
    assert (exact.is_exact, broken.is_exact) == (True, False)
    names = [column.name for column in COLUMNS]
    assert LevelFunction.from_json(exact.to_json(names), COLUMNS).is_exact
    codes = torch.arange(6)[:, None]
    for function in (exact, broken):
        step = FunctionStep(function, 1, [column.n_codes for column in COLUMNS])
        even = torch.full((6, 3), 1 / 3)
        drawn = step.masses(even, codes).scatter(1, codes % 3, 0.0).sum(-1)
        assert bool((drawn == 0.0).all()) == function.is_exact
        scored = step(even.log(), codes).exp().scatter(1, codes % 3, 0.0).sum(-1)
        torch.testing.assert_close(scored, torch.full((6,), function.exceptions))


def test_codes_under_which_a_column_varies_freely_say_nothing_of_it() -> None:
    free = [[0, k % 40] for k in range(60)] + [[2, 0], [2, 1]]
    fixed = [[1, 3]] * 30
    found = LevelFunction.fit([0, 1], np.array(free + fixed))
    assert found.pairs.tolist() == [[1, 3]]
    assert found.exceptions == pytest.approx(0.5 / 31)


def test_a_demanded_function_has_no_exceptions_and_comes_after_its_parents() -> None:
    found = LevelFunction.fit([3, 1], np.array([[k, k % 3] for k in range(6)] * 4), is_hard=True)
    assert found.exceptions == 0.0
    assert model_with(found).decoder.refinement.order == [0, 2, 3, 1]
    assert model_with(COARSE_BY_FINE).decoder.refinement.order == [0, 1, 2, 3]


# Documents


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_document_gives_the_function_back(function: LevelFunction) -> None:
    document = function.to_json([column.name for column in COLUMNS])
    again = LevelFunction.from_json(document, COLUMNS)
    assert again.to_json([column.name for column in COLUMNS]) == document


@pytest.mark.parametrize(
    "wrong",
    [
        {"pairs": []},
        {"pairs": [[0]]},
        {"pairs": [[0, 6]]},
        {"pairs": [[-1, 0]]},
        {"pairs": [[3, 0]]},
        {"of": []},
        {"of": ["nobody"]},
        {"of": ["d"]},
        {"exceptions": 1.0},
        {"exceptions": -0.1},
        {"exceptions": float("nan")},
    ],
)
def test_a_document_of_other_columns_or_codes_is_refused(wrong: dict[str, object]) -> None:
    document = FINE_BY_COARSE.to_json([column.name for column in COLUMNS])
    with pytest.raises(ValueError, match=r"a function of|not in list"):
        LevelFunction.from_json(document | wrong, COLUMNS)


def test_other_pairs_have_the_share_that_pairs_of_one_row_and_two_let_expect() -> None:
    rows = np.array([[0, 0]] * 10 + [[0, 1]] * 2 + [[0, 2]] + [[1, 2]] * 7)
    relation = LevelFunction.of_pairs((4, 2), rows)
    assert relation.parents == (4,)
    assert relation.column == 2
    assert relation.pairs.tolist() == [[0, 0], [0, 1], [1, 2]]
    assert relation.exceptions == pytest.approx((1 + 2 + 0.5) / 21)


def test_nothing_is_constrained_of_a_code_that_mostly_has_pairs_of_its_own() -> None:
    rows = np.array([[0, 0]] * 10 + [[1, k] for k in range(6)])
    assert LevelFunction.of_pairs((0, 1), rows).pairs.tolist() == [[0, 0]]
