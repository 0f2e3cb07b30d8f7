# `korbert serve` in a container: docs/how-to/docker.md.
FROM python:3.11-slim AS build
COPY . /src
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --extra-index-url https://download.pytorch.org/whl/cpu \
        --constraint /src/constraints.txt '/src[serve]'

FROM python:3.11-slim
RUN apt-get -q update && apt-get -qy install --no-install-recommends libgomp1 \
    && rm -rf /var/lib/apt/lists/* \
    && useradd --no-create-home --shell /usr/sbin/nologin korbert
COPY --from=build /venv /venv
USER korbert
WORKDIR /tmp
ENV PATH=/venv/bin:$PATH PYTHONUNBUFFERED=1
EXPOSE 8000
HEALTHCHECK --start-period=60s CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://localhost:8000/ready')"]
ENTRYPOINT ["korbert", "serve", "--host", "0.0.0.0"]
