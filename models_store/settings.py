"""The store's settings, from the environment."""

from __future__ import annotations

from pydantic_settings import BaseSettings, SettingsConfigDict


class StoreSettings(BaseSettings):
    """Where the bytes are."""

    model_config = SettingsConfigDict(env_prefix="GCVAE_", frozen=True, extra="ignore")

    store_url: str
