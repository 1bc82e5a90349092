# Two images from one source: `service` (HTTP API, CPU) and `worker` (training; CUDA where there is a
# device, the CPU where there is none).
#
# TORCH_INDEX names the package index that torch alone is taken from. Left empty, torch comes from the
# default index, whose Linux build brings CUDA along; PyTorch's CPU index makes a far smaller service.

FROM python:3.11.14-slim-bookworm AS base
ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    PATH=/opt/gcvae/bin:$PATH
RUN groupadd --system --gid 10001 gcvae \
    && useradd --system --uid 10001 --gid gcvae --home-dir /var/lib/gcvae --create-home gcvae
WORKDIR /var/lib/gcvae

FROM base AS build
ARG TORCH_INDEX=""
WORKDIR /src
COPY pyproject.toml constraints.txt requirements.lock README.md ./
COPY server ./server
# Each file is held against its hash; torch alone is of the index that was chosen.
RUN python -m venv /opt/gcvae \
    && pip install --no-cache-dir --require-hashes -r requirements.lock \
    && grep '^torch==' constraints.txt > torch.txt \
    && pip install --no-cache-dir ${TORCH_INDEX:+--index-url "$TORCH_INDEX"} -r torch.txt
COPY gcvae ./gcvae
COPY catalog ./catalog
COPY models_store ./models_store
COPY runtime ./runtime
COPY service ./service
COPY worker ./worker
COPY gcvae_cli ./gcvae_cli
COPY gcvae_client ./gcvae_client
COPY gcvae_sources ./gcvae_sources
RUN pip install --no-cache-dir --no-deps --no-build-isolation \
    . './server[postgres,mysql,redis,traces]' ./gcvae_client

FROM build AS guide
# The documentation, by a copy of the build: what makes it is in no image.
COPY mkdocs.yml CHANGELOG.md SECURITY.md CONTRIBUTING.md ./
COPY docs ./docs
COPY deploy/guide ./deploy/guide
RUN pip install --no-cache-dir -c constraints.txt '.[docs]' \
    && NO_MKDOCS_2_WARNING=1 mkdocs build --strict --site-dir /guide

FROM base AS service
COPY --from=build /opt/gcvae /opt/gcvae
COPY --from=guide /guide /opt/gcvae/lib/python3.11/site-packages/service/site/guide
USER 10001:10001
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
CMD ["gcvae", "api", "--host", "0.0.0.0", "--port", "8000"]

FROM base AS worker
# Read by the container runtime of the GPU's maker; ignored where there is no GPU.
ENV NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility
COPY --from=build /opt/gcvae /opt/gcvae
USER 10001:10001
HEALTHCHECK --interval=30s --timeout=20s --start-period=60s --retries=3 \
    CMD ["gcvae", "worker", "--check"]
CMD ["gcvae", "worker"]
