# Forecourt in a container: docs/operations/install.md#a-container
#
#   docker build -t forecourt .
#   docker run --read-only --tmpfs /tmp -v forecourt:/data -p 127.0.0.1:8000:8000 forecourt
#
# Another registry or a digest: --build-arg BASE=registry.example.com/python:3.13-slim-bookworm
ARG BASE=python:3.13-slim-bookworm

FROM ${BASE} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /build
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
# The environment has no pip of its own: what runs installs nothing. pip compiles what it installs, which a read-only
# root could not do later.
RUN pip wheel --no-deps --wheel-dir wheel . \
    && python -m venv --without-pip /app \
    && pip --python /app/bin/python install "$(ls wheel/forecourt-*.whl)[encryption,oauth,pap,postgres,redis]"

FROM ${BASE}
LABEL org.opencontainers.image.title="Forecourt" \
      org.opencontainers.image.description="Let AI agents shop a car dealership: the Auto Agent Protocol over A2A, MCP and PAP." \
      org.opencontainers.image.version="0.1.0" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /app /app
# The folder of the data belongs to the one who runs; a new volume takes that over.
RUN install -d -o 10001 -g 10001 -m 0700 /data
ENV PATH=/app/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    FORECOURT_DATA=/data
USER 10001:10001
VOLUME ["/data"]
WORKDIR /data
EXPOSE 8000
STOPSIGNAL SIGTERM
# Alive, not ready: a database that is away is no reason to start again. No curl in the image, and no proxy in between.
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import http.client, os; c = http.client.HTTPConnection('127.0.0.1', int(os.environ.get('FORECOURT_SERVER__PORT', 8000)), timeout=4); c.request('GET', '/healthz'); raise SystemExit(c.getresponse().status != 200)"]
ENTRYPOINT ["forecourt"]
CMD ["serve", "--host", "0.0.0.0"]
