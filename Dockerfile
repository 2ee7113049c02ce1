# Roost's own programs in a small image: `docker build -t roost .`
# On Debian, without a registry: `make image`, which passes Debian's own Python and Go as BASE and GO. The tests build it so.
# The last stage has only Python, the locked dependencies, Roost, and the program that the puller runs in other images.
# Pass BASE with a digest (python:3.13.9-slim-trixie@sha256:…) to pin the very bytes, and GO likewise.
ARG BASE=python:3.13.9-slim-trixie
ARG GO=golang:1.26-trixie

FROM ${GO} AS pause
WORKDIR /src
COPY tools/pause .
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -buildid=" -o /pause .

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
 && /opt/roost/bin/python -m pip uninstall --yes setuptools pip \
 && /opt/roost/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/roost/lib

FROM ${BASE}
LABEL org.opencontainers.image.title="roost" \
      org.opencontainers.image.licenses="BSD-3-Clause" \
      org.opencontainers.image.description="Places the pods of JupyterHubs and BinderHubs on Kubernetes nodes"
COPY --from=build /opt/roost /opt/roost
COPY --from=pause /pause /usr/local/lib/roost/pause
# A number, not a name: `runAsNonRoot` can check numbers only. The root file system may be read-only.
USER 65532:65532
ENV PATH=/opt/roost/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
ENTRYPOINT ["roost"]
