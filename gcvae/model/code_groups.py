"""Code probabilities of columns, and the probabilities below and above a cell.

Each cell has an integer code. Every level has a code of its own, and so do missing cells and every
frequent number. All other numbers share one code, the point code c; they also have a density. The
column's CDF is

    F(x) = sum_{k: x_k <= x} beta_k + beta_c G(x)

with beta_k the probability of code k, x_k its number, and G the CDF of the numbers with code c. A
code that is ordered below all numbers, such as that of missing cells, has x_k = -inf.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from gcvae.model.networks import ColumnShape, set_constants
from gcvae.numerics.batches import broadcast_shape

_PADDING = -1e30
"""Logit of codes beyond a column's last one, which pad columns of a group to the same width."""
_LEAST_PLAIN_SUM = 1e-30

Triple = tuple[Tensor, Tensor, Tensor]


class CodeGroup(nn.Module):
    """Layer for the code probabilities beta_jk = softmax(W h + b)_jk of a group of D_group columns
    with similar numbers of codes, which are padded to the largest, K_group.

    Attributes:
        columns: Indices of the columns in the table. Shape: (D_group,).
        last_codes: Last code of each column; in columns of numbers the code that all infrequent
            numbers share. Shape: (D_group,).
        is_real: Whether the column contains numbers. Shape: (D_group,).
        padding: Terms added to logits: 0 for codes, -1e30 for padding. Shape: (D_group, K_group).
        code_values: Number that each code stands for; -inf for codes that are ordered below all
            numbers, such as that of missing cells; inf for last codes, and for all codes of columns
            of levels. Shape: (D_group, K_group), float64.

    Source: Section 4, beta_{i,j}.
    """

    columns: Tensor
    last_codes: Tensor
    is_real: Tensor
    padding: Tensor
    code_values: Tensor

    def __init__(self, d_hidden: int, columns: Sequence[ColumnShape], group: Sequence[int]) -> None:
        super().__init__()
        members = [columns[j] for j in group]
        self.shape = len(group), max(column.n_codes for column in members)
        last_codes = torch.tensor([column.n_codes for column in members]) - 1
        is_real = torch.tensor([column.point_code is not None for column in members])
        beyond = torch.arange(self.shape[1]) > last_codes[:, None]
        code_values = torch.full(self.shape, torch.inf, dtype=torch.float64)
        for row, column in enumerate(members):
            code_values[row, : len(column.code_values)] = torch.tensor(column.code_values)
        set_constants(
            self,
            columns=torch.tensor(group),
            last_codes=last_codes,
            is_real=is_real,
            padding=torch.where(beyond, _PADDING, 0.0),
            code_values=code_values,
        )
        self.logits = nn.Linear(d_hidden, self.shape[0] * self.shape[1])

    def forward(self, hidden: Tensor) -> Tensor:
        """Returns the logits of codes. Shape: (..., d_hidden) -> (..., D_group, K_group)."""
        logits: Tensor = self.logits(hidden).unflatten(-1, self.shape)
        return logits

    def log_beta(self, logits: Tensor) -> Tensor:
        """Returns log code probabilities; padding has probability zero. Shape: as logits."""
        return torch.log_softmax(logits + self.padding, dim=-1)

    def log_prob(self, log_beta: Tensor, codes: Tensor) -> Tensor:
        """Returns the log probability of each cell's code; -inf for code -1, an unknown value.
        Shape: log_beta (..., D_group, K_group), codes (..., D_group) -> (..., D_group)."""
        code = codes[..., None].long().clamp(min=0)
        shape = broadcast_shape(code.shape[:-1], log_beta.shape[:-1])
        log_beta, code = log_beta.expand(*shape, -1), code.expand(*shape, 1)
        return torch.where(codes >= 0, log_beta.gather(-1, code).squeeze(-1), -torch.inf)

    def log_point(self, log_beta: Tensor) -> Tensor:
        """Returns the log probability of each column's last code. In columns of numbers, all
        numbers that are not frequent values share this code. Shape: (..., D_group, K_group) ->
        (..., D_group)."""
        at = self.last_codes[:, None].expand(*log_beta.shape[:-1], 1)
        return log_beta.gather(-1, at).squeeze(-1)

    def tails(self, log_beta: Tensor, codes: Tensor, values: Tensor) -> Triple:
        """Returns (log P(code), log P(codes below the cell), log P(codes above the cell)).

        The second and third probability omit the code that all infrequent numbers share, because
        these numbers may lie on both sides of the cell. Each is summed directly, because
        subtraction from one would be inaccurate for small probabilities. Code -1, a value that the
        model does not contain, has probability zero.

        Shape: log_beta (..., D_group, K_group), codes and values (n, D_group) -> three of (...,
        D_group).
        """
        k = torch.arange(self.shape[1], device=log_beta.device)
        among = torch.searchsorted(self.code_values, values.T.contiguous(), right=True).T
        is_number = self.is_real & (codes == self.last_codes)
        n_below = torch.where(is_number, among, codes)
        first_above = torch.where(is_number, among, codes + 1)
        n_others = self.last_codes + ~self.is_real
        shape = broadcast_shape(codes.shape, log_beta.shape[:-1])
        log_beta = log_beta.expand(*shape, -1)
        below = log_sum_where(log_beta, k < n_below[..., None])
        is_above = (k >= first_above[..., None]) & (k < n_others[:, None])
        above = log_sum_where(log_beta, is_above)
        return (
            self.log_prob(log_beta, codes),
            torch.where(n_below > 0, below, -torch.inf),
            torch.where((codes >= 0) & (first_above < n_others), above, -torch.inf),
        )

    def codes_at(self, log_beta: Tensor, u: Tensor, cdf: Callable[[Tensor], Tensor]) -> Triple:
        """Inverts each column's CDF F: finds the code of the cell at probability u.

        With x_k the number of code k, bisection finds the first k with F(x_k) > u. The code is k if
        u is within the jump of F at x_k. If u is below the jump, it is the code that all infrequent
        numbers share.

        Args:
            log_beta: Log code probabilities. Shape: (..., D_group, K_group).
            u: Probabilities to invert. Shape: (..., D_group).
            cdf: CDF of the infrequent numbers; ignored for columns of levels.

        Returns:
            The code, the total probability of the codes below it (without that of infrequent
            numbers), and the probability of the code.

        Shape: three of (..., D_group).
        """
        k = torch.arange(self.shape[1], device=u.device)
        is_point = self.is_real[:, None] & (k == self.last_codes[:, None])
        beta = log_beta.double().exp()
        point = torch.where(self.is_real, self.log_point(log_beta).double().exp(), 0.0)
        others = torch.where(is_point, 0.0, beta)
        upper, code_values = others.cumsum(-1), self.code_values.expand_as(beta)

        def jump(code: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            """Returns, for a code k, the probability of all smaller codes (without the code of
            infrequent numbers), and the CDF just below x_k and at x_k."""
            mass, total, value = (_at(t, code) for t in (others, upper, code_values))
            start = total - mass + point * cdf(value)
            return total - mass, start, start + mass

        low, high = torch.zeros_like(u, dtype=torch.long), self.last_codes.expand_as(u)
        for _ in range(self.shape[1].bit_length()):
            middle = (low + high) // 2
            is_below = (jump(middle)[2] <= u) & (middle < high)
            low, high = torch.where(is_below, middle + 1, low), torch.where(is_below, high, middle)
        below, start, _ = jump(low)
        is_number = self.is_real & ((low == self.last_codes) | (u < start))
        mass = torch.where(is_number, point, _at(others, low))
        return torch.where(is_number, self.last_codes, low), below, mass


def _at(table: Tensor, codes: Tensor) -> Tensor:
    return table.gather(-1, codes[..., None]).squeeze(-1)


def log_sum_where(log_values: Tensor, chosen: Tensor) -> Tensor:
    """Returns the log of the sum of exp(log_values) over the chosen entries. A sum that would
    underflow is computed in logarithms. If no entry is chosen, the result is arbitrary. Shape:
    (..., K) each -> (...)."""
    total = (log_values.exp() * chosen).sum(-1)
    underflown = total < _LEAST_PLAIN_SUM
    log_total = torch.where(underflown, 1.0, total).log()
    if not bool(underflown.any()):
        return log_total
    rest = log_values[underflown].masked_fill(~chosen.expand_as(log_values)[underflown], _PADDING)
    return log_total.masked_scatter(underflown, rest.logsumexp(-1))


def code_groups(d_hidden: int, columns: Sequence[ColumnShape]) -> list[CodeGroup]:
    """Returns a layer for each group of columns whose numbers of codes lie between the same two
    powers of two, so that little is padded. Columns with a single code are in no group."""
    members: dict[int, list[int]] = {}
    for j, column in enumerate(columns):
        if column.n_codes > 1:
            members.setdefault((column.n_codes - 1).bit_length(), []).append(j)
    return [CodeGroup(d_hidden, columns, group) for _, group in sorted(members.items())]
