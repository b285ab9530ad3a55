# syntax=docker/dockerfile:1
# Python's image by its digest, python:3.11-slim@sha256:...; `make image` looks the digest up and gives it.
ARG PYTHON_IMAGE

FROM ${PYTHON_IMAGE} AS build
ARG PYTHON_IMAGE
RUN case "$PYTHON_IMAGE" in *@sha256:*) ;; *) echo "PYTHON_IMAGE has no digest: $PYTHON_IMAGE" >&2; exit 1 ;; esac
WORKDIR /src
COPY image image
# What builds the package stays in this stage. What runs goes to an environment without pip. Everything is a wheel with a
# hash that image/ knows: nothing is compiled, and no index can put in something else.
RUN python -m pip install --no-cache-dir --disable-pip-version-check --root-user-action=ignore \
      --require-hashes --only-binary=:all: -r image/build-requirements.txt \
 && python -m venv --without-pip /opt/bayplan \
 && python -m pip --python /opt/bayplan/bin/python install --no-cache-dir --disable-pip-version-check \
      --require-hashes --only-binary=:all: -r image/requirements.txt
COPY LICENSE README.md pyproject.toml ./
COPY operator operator
RUN python -m pip wheel --no-cache-dir --disable-pip-version-check --no-index --no-deps --no-build-isolation \
      --wheel-dir /src/wheels . \
 && python -m pip --python /opt/bayplan/bin/python install --no-cache-dir --disable-pip-version-check \
      --no-index --no-deps /src/wheels/*.whl

FROM ${PYTHON_IMAGE} AS run
# Python's image has pip, and a copy of it to make environments with.
RUN python -m pip uninstall --yes --quiet --disable-pip-version-check --root-user-action=ignore setuptools wheel pip \
 && rm -rf "$(python -c 'import os, ensurepip; print(os.path.dirname(ensurepip.__file__))')" \
 && for each in pip cc gcc ld make; do if command -v "$each"; then echo "$each is left" >&2; exit 1; fi; done
COPY --from=build /opt/bayplan /opt/bayplan

# One layer, in which what was taken away is not there at all.
FROM scratch
LABEL org.opencontainers.image.title="bayplan" \
      org.opencontainers.image.description="A bin-packing second scheduler for Kubernetes" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=run / /
# PYTHONSAFEPATH: the working directory is never a source of modules. The root file system may be read-only:
# nothing is written but to /tmp.
ENV PATH=/opt/bayplan/bin:/usr/local/bin:/usr/bin:/bin \
    LANG=C.UTF-8 \
    HOME=/tmp \
    PYTHONSAFEPATH=1 \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /tmp
USER 65532:65532
EXPOSE 10259
ENTRYPOINT ["bayplan"]
CMD ["run"]
