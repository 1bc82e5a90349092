"""The presets of training, with what each is likely to take on a dataset."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import BaseModel, Field

from gcvae.training.settings import PRESETS
from service.access import Workspace
from service.bodies import EstimateBody, TrainingBody
from service.routes.models import checked_training, training_estimate

router = APIRouter(tags=["models"])


class PresetBody(BaseModel):
    """A way to train."""

    name: str
    description: str
    estimate: EstimateBody = Field(description="of training on the dataset with this preset")


class PresetsBody(BaseModel):
    """Every way to train, the best of them first."""

    dataset_id: str
    presets: list[PresetBody]


@router.get("/v1/datasets/{dataset_id}/presets")
def list_presets(dataset_id: str, workspace: Workspace) -> PresetsBody:
    """List the presets of training, and how long each is likely to take on the dataset."""
    dataset = workspace.datasets.get(dataset_id)
    presets = [
        PresetBody(
            name=preset.name,
            description=preset.description,
            estimate=EstimateBody.model_validate(
                training_estimate(checked_training(TrainingBody(preset=preset.name)), dataset)
            ),
        )
        for preset in PRESETS.values()
    ]
    return PresetsBody(dataset_id=dataset.id, presets=presets)
