"""Training: auto-encoding variational Bayes with Adam, early stopping and exact resumption.

The seed, the epoch or step, and the purpose determine each random number. On the CPU, weights of a
run that is resumed from a checkpoint equal those of an uninterrupted run to the last bit.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable
from dataclasses import asdict, astuple, dataclass, field
from typing import Any

import torch
from torch import Tensor

from gcvae.artifact.file import pack_tensors, unpack_tensors
from gcvae.artifact.versions import VERSION
from gcvae.codec.encoded_rows import TrainingRows
from gcvae.codec.encoded_table import EncodedTable
from gcvae.errors import DivergedError
from gcvae.model.bounds import draw_elbo, elbo
from gcvae.model.decoders import GenerativeModel
from gcvae.model.networks import Dropout
from gcvae.numerics.adam import AdamW
from gcvae.numerics.freed_memory import keep_freed_memory
from gcvae.numerics.generators import generator_for
from gcvae.paper.regularisers import locality_penalty, rank_penalty
from gcvae.training.augmentation import AugmentationSampler
from gcvae.training.checkpoints import CheckpointStore
from gcvae.training.progress import Progress
from gcvae.training.schedule import Evaluation, Schedule
from gcvae.training.settings import MOST_HELD_OUT_ROWS, SettledConfig

_REPORT_EVERY_SECONDS = 0.5
_HELD_OUT_DRAWS = 1
_HELD_OUT_CHUNK_ROWS = 512
_LEAST_ROWS_TO_HOLD_OUT = 10
_LEAST_GAP_ROWS = 500
"""Minimum number of training rows (all if there are fewer) whose bound is compared with that of
held-out rows."""
_MOST_DIVERGENCES = 3
_HEAD_EVERY_STEPS = 4
"""Steps from one training of the copula head of an autoregressive decoder to the next. It is not
trained in every step, because it takes half as much time per row as the decoder."""
_MOST_AUGMENTATION_SOURCE_ROWS = 100_000
_DIGESTED_ROWS = 1 << 16
_ALGORITHM_VERSION = 4
"""Version of the training algorithm. Raise it if a seed gives other steps or results, or if the
tensors of a checkpoint change."""


@dataclass(frozen=True)
class Divergence:
    """Step at which a training run diverged, and the maximum learning rate until then. The
    restarted run has a third of it."""

    step: int
    learning_rate: float


@dataclass(frozen=True)
class TrainingResult:
    """Result of training, without the weights.

    Attributes:
        history: All evaluations, in order.
        best: Evaluation of the weights that became the model.
        n_steps: Number of updates.
        n_epochs: Number of complete passes over the training rows.
        held_out: Indices of the rows that decided when to stop. Shape: (n_held_out,).
        divergences: All divergences; training was restarted after each.
    """

    history: tuple[Evaluation, ...]
    best: Evaluation
    n_steps: int
    n_epochs: int
    held_out: Tensor
    divergences: tuple[Divergence, ...]

    def record(self, config: SettledConfig, seed: int) -> dict[str, Any]:
        """Returns the result, settings and seed as entries of the model file's training record."""
        return {
            "seed": seed,
            "settings": asdict(config),
            "steps": self.n_steps,
            "best_step": self.best.step,
            "bound_train": self.best.bound_train,
            "bound_held_out": self.best.bound_held_out,
            "held_out_rows": len(self.held_out),
            "divergences": [asdict(divergence) for divergence in self.divergences],
            "history": [asdict(evaluation) for evaluation in self.history],
        }


def split(
    n_rows: int, share: float, seed: int, held_out: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Returns (indices of the training rows, indices of the held-out rows that determine when
    training stops). A table of fewer than 10 rows is not split: both contain all rows.

    Args:
        share: Share of the n rows to hold out; they are chosen at random.
        held_out: Mask of the rows to hold out, instead of a random choice. Shape: (n,).
    """
    if held_out is not None:
        return (~held_out).nonzero()[:, 0], held_out.nonzero()[:, 0][:MOST_HELD_OUT_ROWS]
    if n_rows < _LEAST_ROWS_TO_HOLD_OUT:
        return torch.arange(n_rows), torch.arange(n_rows)
    order = torch.randperm(n_rows, generator=generator_for(seed, "split"))
    n_held_out = min(max(1, round(share * n_rows)), MOST_HELD_OUT_ROWS)
    return order[n_held_out:].sort().values, order[:n_held_out].sort().values


def train(
    model: GenerativeModel,
    rows: TrainingRows,
    config: SettledConfig,
    *,
    seed: int,
    log_scale: Tensor | None = None,
    progress: Callable[[Progress], None] | None = None,
    checkpoints: CheckpointStore | None = None,
) -> TrainingResult:
    """Trains a model in place by maximising the regularised evidence lower bound.

    The model ends with the weights whose bound on held-out rows was best.

    Args:
        rows: Rows of the table, on the model's device or on the CPU. If they are on the CPU, each
            minibatch is copied to the device.
        log_scale: Log Jacobian of the encoding of each row, on the CPU; None stands for 0. It is
            subtracted from reported bounds, so that densities are per unit of the table, but not
            from the loss. Shape: (n,).
        progress: Function that is called with the progress of the run, at most every half second.
        checkpoints: Store of the run's checkpoint; None to save nothing. A stored checkpoint of the
            same run is resumed; one of another version, configuration, seed or table is ignored.

    Raises:
        DivergedError: The loss becomes infinite or NaN, also with smaller step sizes.
        CancelledError: Raised by `progress`.

    Source: Algorithm 1 (AEVB for GCVAE), Eq. (elbo_vae_roc_reg).
    """
    keep_freed_memory()
    run = _Run(model, rows, config, seed, log_scale)
    fingerprint = "" if checkpoints is None else run.fingerprint()
    if checkpoints is not None and (data := checkpoints.load()) is not None:
        checkpoints.restored(is_continued=run.continue_from(data, fingerprint))
    begun_at = reported_at = saved_at = time.monotonic()
    n_updates = 0
    if progress is not None:
        progress(run.progress(None))
    while not run.is_over:
        run.advance()
        n_updates += 1
        now = time.monotonic()
        if progress is not None and (run.is_over or now - reported_at >= _REPORT_EVERY_SECONDS):
            progress(run.progress(n_updates * run.batch_size / (now - begun_at)))
            reported_at = now
        if checkpoints is not None and now - saved_at >= checkpoints.interval_seconds:
            checkpoints.save(run.to_bytes(fingerprint))
            saved_at = time.monotonic()
    model.load_state_dict(run.best_weights)
    return TrainingResult(
        tuple(run.history),
        run.best,
        run.step,
        run.epoch,
        run.held_out_index,
        tuple(run.divergences),
    )


@dataclass
class _Run:
    """State of a training run. A checkpoint contains only what the arguments do not determine, such
    as weights and counters."""

    model: GenerativeModel
    rows: TrainingRows
    config: SettledConfig
    seed: int
    log_scale: Tensor | None = None
    step: int = 0
    history: list[Evaluation] = field(default_factory=list)
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    loss_sum: float = 0.0
    """Sum, over the updates since the last evaluation, of the negative bound in nats per row."""
    averaged: dict[str, Tensor] = field(default_factory=dict)
    """Exponential moving average of the weights; empty if `averaging` is 0."""
    annealing_from: int | None = None
    """Step at which the learning rate began to fall; None while it has not."""
    divergences: list[Divergence] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Splits the rows into training and held-out rows, and initialises the optimiser."""
        config = self.config
        self.parameters = list(self.model.parameters())
        self.device = self.parameters[0].device
        train_index, self.held_out_index = split(
            len(self.rows), config.held_out_share, self.seed, self.rows.held_out
        )
        self.train_log_scale = self._mean_log_scale(train_index)
        self.held_out_log_scale = self._mean_log_scale(self.held_out_index)
        self.train_index = train_index.to(self.rows.device)
        self.held_out_rows = self._select(self.held_out_index.to(self.rows.device))
        self.gap_rows = self._gap_sample() if config.gap_weight else None
        self.augmentation = self._augmentation_sampler() if config.imagined_rows else None
        self.batch_size = min(config.batch_size, len(train_index))
        self.steps_per_epoch = -(-len(train_index) // self.batch_size)
        self.first_weights = {name: t.clone() for name, t in self.model.state_dict().items()}
        self.optimiser = self._new_optimiser()
        # References to the model's tensors, not copies; updates and `load_state_dict` change them.
        self._state = self.model.state_dict()
        self._order_of: tuple[int, Tensor] | None = None

    def _augmentation_sampler(self) -> AugmentationSampler:
        step = -(-len(self.train_index) // _MOST_AUGMENTATION_SOURCE_ROWS)
        rows = self._select(self.train_index[::step])
        return AugmentationSampler(rows, self.model.marginals.columns, self.model.context_columns)

    def _gap_sample(self) -> EncodedTable:
        """Returns the training rows whose bound is compared with that of the held-out rows."""
        n_rows = max(len(self.held_out_index), _LEAST_GAP_ROWS)
        return self._select(self.train_index[:: max(1, len(self.train_index) // n_rows)])

    def _select(self, index: Tensor) -> EncodedTable:
        return self.rows.take(index).to(self.device)

    def _new_optimiser(self) -> AdamW:
        betas = 0.9, self.config.gradient_memory
        return AdamW(self.parameters, betas, self.config.weight_decay)

    @property
    def base_rate(self) -> float:
        """Maximum learning rate, which each divergence divides by three."""
        return self.config.learning_rate / 3.0 ** len(self.divergences)

    def _mean_log_scale(self, index: Tensor) -> float:
        return 0.0 if self.log_scale is None else float(self.log_scale[index].mean())

    @property
    def schedule(self) -> Schedule:
        """Learning rate schedule at the current step."""
        return Schedule(self.config, self.step, self.history, self.annealing_from)

    @property
    def best(self) -> Evaluation:
        return self.schedule.best

    @property
    def epoch(self) -> int:
        return self.step // self.steps_per_epoch

    @property
    def is_over(self) -> bool:
        return self.schedule.is_over

    def progress(self, rows_per_second: float | None) -> Progress:
        """Returns a report on the run: the finished share of the expected steps, and the bounds of
        the last evaluation or, at the end, of the best one."""
        schedule, known = self.schedule, self.history[-1] if self.history else None
        if schedule.is_over:
            known = self.best
        left = 0.0 if schedule.is_over else schedule.steps_left
        return Progress(
            phase="training",
            fraction=self.step / max(self.step + left, 1.0),
            epoch=self.epoch,
            epochs=-(-schedule.last_step // self.steps_per_epoch),
            bound_train=None if known is None else known.bound_train,
            bound_held_out=None if known is None else known.bound_held_out,
            rows_per_second=rows_per_second,
        )

    def advance(self) -> None:
        """Updates the weights once, and evaluates them if due; restarts the run if it diverged."""
        try:
            self._update()
        except DivergedError:
            if len(self.divergences) == _MOST_DIVERGENCES:
                raise
            self._begin_anew()

    def _begin_anew(self) -> None:
        """Restarts the run from the initial weights with a smaller step size."""
        self.divergences.append(Divergence(self.step, self.base_rate))
        self.model.load_state_dict(self.first_weights)
        self.optimiser = self._new_optimiser()
        self.step, self.loss_sum, self.annealing_from = 0, 0.0, None
        self.history, self.best_weights, self.averaged = [], {}, {}

    def _update(self) -> None:
        loss = self._loss(self._select(self._batch()))
        self.optimiser.forget_gradients()
        loss.backward()
        if self.config.gradient_limit is not None:
            torch.nn.utils.clip_grad_norm_(self.parameters, self.config.gradient_limit)
        self.optimiser.step(self.base_rate * self.schedule.learning_rate)
        self.step += 1
        self._average()
        schedule = self.schedule
        since = self.step - (self.annealing_from or 0)
        if since % schedule.evaluation_interval == 0 or schedule.is_over:
            self._evaluate()

    @property
    def kl_weight(self) -> float:
        """Weight of the KL divergence in the loss; it rises linearly to one during warm-up."""
        n_steps = self.schedule.warm_up_steps
        return min(1.0, (self.step + 1) / n_steps) if n_steps else 1.0

    def _average(self) -> None:
        """Updates the moving average of the weights. Its decay is smaller in the first steps, so
        that it soon forgets the initial weights."""
        if not self.config.averaging:
            return
        state = self._state
        if not self.averaged:
            self.averaged = {name: tensor.clone() for name, tensor in state.items()}
        share = 1.0 - min(self.config.averaging, (1.0 + self.step) / (10.0 + self.step))
        torch._foreach_lerp_([self.averaged[name] for name in state], list(state.values()), share)

    def _kept_weights(self) -> dict[str, Tensor]:
        state = self.averaged or self.model.state_dict()
        return {name: tensor.detach().clone() for name, tensor in state.items()}

    def _batch(self) -> Tensor:
        epoch, at = divmod(self.step, self.steps_per_epoch)
        if self._order_of is None or self._order_of[0] != epoch:
            generator = generator_for(self.seed, "order", epoch)
            order = torch.randperm(len(self.train_index), generator=generator)
            self._order_of = epoch, order.to(self.rows.device)
        order = self._order_of[1][at * self.batch_size : (at + 1) * self.batch_size]
        return self.train_index[order]

    def _loss(self, batch: EncodedTable) -> Tensor:
        """Returns the negative regularised bound of a minibatch, in nats per row. The paper's
        factor N / M is omitted (N rows in the table, M in the minibatch), because Adam's steps do
        not depend on the scale of the loss."""
        config = self.config
        generator = generator_for(self.seed, "noise", self.step, device=self.device)
        dropout = None
        if config.refinement:
            dropout = Dropout(config.column_dropout, config.hidden_dropout, generator)
        exact = config.objective == "exact"
        rows = self._augmented(batch)
        has_head = config.refinement and self.step % _HEAD_EVERY_STEPS == 0
        n_head_rows = len(batch) if has_head else 0
        draw = draw_elbo(
            self.model, rows, generator, exact=exact, dropout=dropout, n_head_rows=n_head_rows
        )
        loss = -draw.elbo.mean()
        self.loss_sum += self._finite(-draw.elbo[: len(batch)].mean())
        if self.kl_weight < 1.0:
            loss = loss - (1.0 - self.kl_weight) * draw.kl.mean()
        if draw.head_log_prob is not None:
            loss = loss - draw.head_log_prob.mean()
        if config.locality_weight:
            loadings = draw.conditional.loadings
            if loadings is not None:
                penalty = locality_penalty(loadings, config.locality_norm).mean()
                loss = loss + config.locality_weight * penalty
        if config.rank_weight:
            loss = loss + config.rank_weight * rank_penalty(draw.z, generator).mean()
        return loss

    def _augmented(self, batch: EncodedTable) -> EncodedTable:
        if self.augmentation is None:
            return batch
        n = round(self.config.imagined_rows * len(batch) / len(self.train_index))
        generator = generator_for(self.seed, "imagined rows", self.step)
        return batch.followed_by(self.augmentation.draw(n, generator))

    def _finite(self, loss: Tensor) -> float:
        value = float(loss.detach())
        if value - value != 0.0:
            raise DivergedError(
                f"training diverged at step {self.step}: the bound became {-value}, as it did with "
                "larger step sizes before; a lower learning_rate may help"
            )
        return value

    def _evaluate(self) -> None:
        """Evaluates the bound on held-out rows, and stores the weights if they are the best."""
        present, kept = self.model.state_dict(), self._kept_weights()
        present = {name: tensor.detach().clone() for name, tensor in present.items()}
        self.model.load_state_dict(kept)
        held_out = self._bound(self.held_out_rows)
        training_bound = None if self.gap_rows is None else self._bound(self.gap_rows)
        self.model.load_state_dict(present)
        n_steps = self.step - (self.history[-1].step if self.history else 0)
        evaluation = Evaluation(
            step=self.step,
            bound_train=-self.loss_sum / n_steps - self.train_log_scale,
            bound_held_out=held_out - self.held_out_log_scale,
            gap=None if training_bound is None else training_bound - held_out,
        )
        self.loss_sum = 0.0
        self.history.append(evaluation)
        if self.best is evaluation:
            self.best_weights = kept
        if self.config.annealing and self.annealing_from is None and self.schedule.is_over:
            self.annealing_from = self.step
            self.model.load_state_dict(self.best_weights)
            self.averaged = {name: t.clone() for name, t in self.best_weights.items()}

    def _bound(self, rows: EncodedTable) -> float:
        """Returns the mean bound of the rows, with the same noise in every evaluation."""
        generator = generator_for(self.seed, "held-out", device=self.device)
        exact = self.config.objective == "exact"
        with torch.no_grad():
            bounds = [
                elbo(self.model, rows.take(at), generator, n_draws=_HELD_OUT_DRAWS, exact=exact)
                for at in torch.arange(len(rows)).split(_HELD_OUT_CHUNK_ROWS)
            ]
        return -self._finite(-torch.cat(bounds).mean())

    def fingerprint(self) -> str:
        """Returns a digest that identifies the run.

        It is computed from the versions of model format and algorithm, the settings, the seed, the
        shapes of the weights, and the rows.
        """
        shapes = {name: [*weights.shape] for name, weights in self.model.state_dict().items()}
        same = [VERSION, _ALGORITHM_VERSION, asdict(self.config), self.seed, shapes]
        digest = hashlib.sha256(json.dumps(same).encode())
        for index in torch.arange(len(self.rows), device=self.rows.device).split(_DIGESTED_ROWS):
            part = self.rows.take(index)
            for tensor in (part.codes, part.values, part.observed):
                digest.update(tensor.cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def to_bytes(self, fingerprint: str) -> bytes:
        """Returns the checkpoint: weights, best weights, optimiser state, counters and history."""
        tensors = {f"weights/{name}": t for name, t in self.model.state_dict().items()}
        tensors |= {f"best/{name}": t for name, t in self.best_weights.items()}
        tensors |= {f"averaged/{name}": t for name, t in self.averaged.items()}
        moments = self.optimiser.to_tensors()
        tensors |= {f"optimiser/{name}": t for name, t in moments.items()}
        history = [astuple(evaluation) for evaluation in self.history]
        state = {
            "fingerprint": fingerprint,
            "step": self.step,
            "history": history,
            "loss_sum": self.loss_sum,
            "annealing_from": self.annealing_from,
            "divergences": [astuple(divergence) for divergence in self.divergences],
        }
        return pack_tensors(tensors, state)

    def continue_from(self, data: bytes, fingerprint: str) -> bool:
        """Restores a checkpoint if it has the same fingerprint; returns whether it did."""
        tensors, state = unpack_tensors(data)
        if state["fingerprint"] != fingerprint:
            return False
        tensors = {name: tensor.to(self.device) for name, tensor in tensors.items()}
        self.model.load_state_dict(_under("weights/", tensors))
        self.best_weights = _under("best/", tensors)
        self.averaged = _under("averaged/", tensors)
        self.annealing_from = state["annealing_from"]
        self.divergences = [Divergence(*values) for values in state["divergences"]]
        self.optimiser.take_tensors(_under("optimiser/", tensors))
        self.step, self.loss_sum = state["step"], state["loss_sum"]
        self.history = [Evaluation(*values) for values in state["history"]]
        return True


def _under(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name[len(prefix) :]: t for name, t in tensors.items() if name.startswith(prefix)}
