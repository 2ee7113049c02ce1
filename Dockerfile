# Roost's own programs in a small image: `docker build -t roost .`
# Two stages: the first has the tools to install, the second only Python, the locked dependencies and Roost.
# Pass BASE with a digest (python:3.13.9-slim-trixie@sha256:…) to pin the very bytes.
ARG BASE=python:3.13.9-slim-trixie

FROM ${BASE} AS build
WORKDIR /src
COPY requirements/build.txt requirements/run.txt requirements/
RUN python -m venv /opt/roost \
 && /opt/roost/bin/python -m pip install --no-cache-dir --require-hashes -r requirements/run.txt \
 && python -m venv /opt/build \
 && /opt/build/bin/python -m pip install --no-cache-dir --require-hashes -r requirements/build.txt
COPY . .
RUN /opt/build/bin/python -m hatchling build --target wheel --directory /wheel \
 && /opt/roost/bin/python -m pip install --no-cache-dir --no-deps --no-index /wheel/*.whl \
 && /opt/roost/bin/python -m pip uninstall --yes pip \
 && /opt/roost/bin/python -m compileall -q /opt/roost/lib

FROM ${BASE}
LABEL org.opencontainers.image.title="roost" \
      org.opencontainers.image.licenses="BSD-3-Clause" \
      org.opencontainers.image.description="Where the pods of JupyterHubs and BinderHubs land"
COPY --from=build /opt/roost /opt/roost
# A number, not a name: `runAsNonRoot` can check numbers only. The root file system may be read-only.
USER 65532:65532
ENV PATH=/opt/roost/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
ENTRYPOINT ["roost"]
