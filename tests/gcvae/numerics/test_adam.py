"""Steps of AdamW, beside torch's optimiser."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from gcvae.numerics.adam import AdamW

N_STEPS = 12


def network() -> nn.Sequential:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))


def loss(model: nn.Sequential, step: int) -> Tensor:
    x = torch.randn(16, 3, generator=torch.Generator().manual_seed(step))
    return (model(x) - x.sum(1, keepdim=True)).square().mean()


def rate(step: int) -> float:
    return 0.01 / (1 + step)


def moved(model: nn.Sequential, optimiser: AdamW, steps: range) -> list[Tensor]:
    for step in steps:
        optimiser.forget_gradients()
        loss(model, step).backward()
        optimiser.step(rate(step))
    return [p.detach().clone() for p in model.parameters()]


def test_steps_are_those_of_torch() -> None:
    model, other = network(), network()
    own = moved(model, AdamW([*model.parameters()], (0.9, 0.99), 0.2), range(N_STEPS))
    optimiser = torch.optim.AdamW(other.parameters(), betas=(0.9, 0.99), weight_decay=0.2)
    for step in range(N_STEPS):
        optimiser.zero_grad()
        loss(other, step).backward()
        optimiser.param_groups[0]["lr"] = rate(step)
        optimiser.step()
    for mine, theirs in zip(own, other.parameters(), strict=True):
        assert torch.allclose(mine, theirs, atol=1e-6)


def test_kept_moments_go_on_to_the_same_bits() -> None:
    model, other = network(), network()
    whole = moved(model, AdamW([*model.parameters()], (0.9, 0.99), 0.2), range(N_STEPS))
    first = AdamW([*other.parameters()], (0.9, 0.99), 0.2)
    moved(other, first, range(5))
    kept = {name: tensor.clone() for name, tensor in first.to_tensors().items()}
    then = AdamW([*other.parameters()], (0.9, 0.99), 0.2)
    then.take_tensors(kept)
    for mine, theirs in zip(whole, moved(other, then, range(5, N_STEPS)), strict=True):
        assert torch.equal(mine, theirs)


def test_parameters_without_a_gradient_stay() -> None:
    model = network()
    before = model[0].weight.detach().clone()
    optimiser = AdamW([*model.parameters()], (0.9, 0.99), 0.5)
    model[2](torch.ones(1, 8)).sum().backward()
    optimiser.step(0.1)
    assert torch.equal(model[0].weight, before)
    assert not torch.equal(model[2].weight, network()[2].weight)
