# Two images: `docker build -t roost .`, and upon it `docker build -t roost-lab --target roost-lab .`
# On Debian, without a registry: `make image`, which passes Debian's own Python and Go as BASE and GO. The tests build both so.
# `roost` has only Python, the locked dependencies, Roost, and the program that the puller runs in other images. `roost-lab` adds a layer:
# the recorder, its commands and their dependencies.
# Pass BASE with a digest (python:3.13.9-slim-trixie@sha256:…) to pin the very bytes, and GO likewise.
ARG BASE=python:3.13.9-slim-trixie
ARG GO=golang:1.26-trixie
# What `roost-lab` stands on; a build that has made `roost` already names it here.
ARG ROOST=roost

FROM ${GO} AS pause
WORKDIR /src
COPY tools/pause .
RUN CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -buildid=" -o /pause .

FROM ${BASE} AS build
WORKDIR /src
COPY requirements/build.txt requirements/run.txt requirements/
# Nothing of Roost uses the asynchronous half of the Kubernetes client, which is nine tenths of it, nor what that half alone needs.
RUN python -m venv /opt/roost \
 && /opt/roost/bin/python -m pip install --no-cache-dir --no-compile --require-hashes -r requirements/run.txt \
 && rm -r /opt/roost/lib/python3*/site-packages/kubernetes/aio \
 && /opt/roost/bin/python -m pip uninstall --yes \
      aiohappyeyeballs aiohttp aiohttp-retry aiosignal frozenlist multidict propcache yarl \
 && python -m venv /opt/build \
 && /opt/build/bin/python -m pip install --no-cache-dir --require-hashes -r requirements/build.txt
COPY . .
RUN /opt/build/bin/python -m hatchling build --target wheel --directory /wheel \
 && /opt/roost/bin/python -m pip install --no-cache-dir --no-compile --no-deps --no-index /wheel/*.whl \
 && /opt/roost/bin/python -m pip uninstall --yes setuptools pip \
 && /opt/roost/bin/python -m compileall -q -f --invalidation-mode unchecked-hash /opt/roost/lib

FROM ${BASE} AS build-lab
WORKDIR /src
COPY requirements/build.txt requirements/lab.txt requirements/
# Beside Roost's environment, not in it: so the image's layer holds what the lab adds, and nodes fetch the rest once.
RUN python -m venv /opt/build \
 && /opt/build/bin/python -m pip install --no-cache-dir --require-hashes -r requirements/build.txt \
 && /opt/build/bin/python -m pip install --no-cache-dir --no-compile --require-hashes --target /opt/roost-lab -r requirements/lab.txt
COPY lab lab
RUN cd lab && /opt/build/bin/python -m hatchling build --target wheel --directory /wheel \
 && /opt/build/bin/python -m pip install --no-cache-dir --no-compile --no-deps --no-index --target /opt/roost-lab /wheel/*.whl \
 && /opt/build/bin/python -m compileall -q -f --invalidation-mode unchecked-hash /opt/roost-lab

FROM ${BASE} AS roost
LABEL org.opencontainers.image.title="roost" \
      org.opencontainers.image.licenses="BSD-3-Clause" \
      org.opencontainers.image.description="Places the pods of JupyterHubs and BinderHubs on Kubernetes nodes"
COPY --from=build /opt/roost /opt/roost
COPY --from=pause /pause /usr/local/lib/roost/pause
# A number, not a name: `runAsNonRoot` can check numbers only. The root file system may be read-only.
USER 65532:65532
ENV PATH=/opt/roost/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
ENTRYPOINT ["roost"]

FROM ${ROOST} AS roost-lab
LABEL org.opencontainers.image.title="roost-lab" \
      org.opencontainers.image.description="Records and explains where the pods of JupyterHubs and BinderHubs start"
COPY --from=build-lab /opt/roost-lab /opt/roost-lab
ENV PYTHONPATH=/opt/roost-lab

# What is built where no target is named.
FROM roost
