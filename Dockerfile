# vit_viz on any host:   docker build -t vit_viz . && docker run --rm -p 127.0.0.1:7860:7860 vit_viz
# Without a GPU, a third of the size:   docker build --build-arg TORCH_INDEX=https://download.pytorch.org/whl/cpu -t vit_viz .
FROM python:3.12-slim

# where torch alone comes from; nothing for the one in the lock file, with CUDA
ARG TORCH_INDEX

# 0.0.0.0 is the container's own address: who can reach it is decided by `docker run -p`
ENV GRADIO_SERVER_NAME=0.0.0.0 \
    GRADIO_SERVER_PORT=7860 \
    GRADIO_ANALYTICS_ENABLED=False \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1

# the folder of downloads is there already, so that a volume over it belongs to the app, too
RUN useradd --create-home --uid 1000 app && install -d -o app /home/app/.cache
WORKDIR /home/app/vit_viz

# each file has its SHA-256 in requirements.lock (SECURITY.md), except a torch from another index, which needs no CUDA either
COPY requirements.lock ./
RUN if [ -n "$TORCH_INDEX" ]; then \
        pip install --no-cache-dir --disable-pip-version-check --only-binary :all: --no-deps --index-url "$TORCH_INDEX" \
            "$(grep -o '^torch==[^ ]*' requirements.lock)" && \
        awk '/^[a-z]/ { skip = /^(torch=|triton=|cuda-|nvidia-)/ } !skip' requirements.lock > cpu.lock && \
        mv cpu.lock requirements.lock; \
    fi && \
    pip install --no-cache-dir --disable-pip-version-check --only-binary :all: --require-hashes -r requirements.lock

COPY app.py LICENSE ./
COPY assets ./assets
COPY vit_viz ./vit_viz

USER app
EXPOSE 7860
HEALTHCHECK --interval=30s --timeout=10s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import os, http.client as http; c = http.HTTPConnection('localhost', int(os.environ['GRADIO_SERVER_PORT']), timeout=8); c.request('GET', '/health'); raise SystemExit(c.getresponse().status != 200)"]
CMD ["python", "app.py"]
