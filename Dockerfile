# syntax=docker/dockerfile:1
ARG PYTHON_IMAGE=python:3.11-slim

FROM ${PYTHON_IMAGE} AS build
WORKDIR /src
# The environment holds no pip: nothing in the final image can install anything into it.
RUN python -m venv --without-pip /opt/bayplan
COPY LICENSE README.md constraints.txt pyproject.toml ./
COPY operator operator
RUN pip --python /opt/bayplan/bin/python install --no-cache-dir --disable-pip-version-check \
      -c constraints.txt .

FROM ${PYTHON_IMAGE}
LABEL org.opencontainers.image.title="bayplan" \
      org.opencontainers.image.description="A bin-packing second scheduler for Kubernetes" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /opt/bayplan /opt/bayplan
# PYTHONSAFEPATH: the working directory is never a source of modules. The root file system may be read-only:
# nothing is written but to /tmp.
ENV PATH=/opt/bayplan/bin:$PATH \
    HOME=/tmp \
    PYTHONSAFEPATH=1 \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1
WORKDIR /tmp
USER 65532:65532
EXPOSE 10259
ENTRYPOINT ["bayplan"]
CMD ["run"]
