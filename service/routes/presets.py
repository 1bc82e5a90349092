"""Endpoint that lists training presets, with estimates of their cost for a dataset."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, Field

from gcvae.training.settings import PRESETS
from service.access import Workspace
from service.bodies import EstimateBody, TrainingBody
from service.routes.models import checked_training, report_estimate, training_estimate

router = APIRouter(tags=["models"])


class PresetBody(BaseModel):
    """A training preset (a named combination of settings) and its estimated cost."""

    name: str
    description: str
    estimate: EstimateBody = Field(description="estimate of a training with this preset")
    report_estimate: EstimateBody | None = Field(
        description="estimate of the report that follows; null if none does"
    )


class PresetsBody(BaseModel):
    """All training presets, starting with the preset that gives the best models."""

    dataset_id: str
    presets: list[PresetBody]


@router.get("/v1/datasets/{dataset_id}/presets")
def list_presets(dataset_id: str, workspace: Workspace) -> PresetsBody:
    """List the training presets with their estimated time and memory for the dataset."""
    dataset = workspace.datasets.get(dataset_id)
    trainings = {name: checked_training(TrainingBody(preset=name)) for name in PRESETS}
    presets = [
        PresetBody.model_validate(
            {
                "name": name,
                "description": PRESETS[name].description,
                "estimate": training_estimate(training, dataset),
                "report_estimate": report_estimate(training, dataset),
            }
        )
        for name, training in trainings.items()
    ]
    return PresetsBody(dataset_id=dataset.id, presets=presets)
