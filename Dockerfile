# syntax=docker/dockerfile:1

# The compiler runs on the builder's own platform and cross-compiles: no emulation.
FROM --platform=$BUILDPLATFORM golang:1.26 AS build
WORKDIR /src

# The dependencies are a layer of their own, which lasts until go.mod or go.sum changes.
COPY go.mod go.sum ./
RUN go mod download

COPY cmd/manager/ cmd/manager/
COPY reconciler/ reconciler/
COPY charts/ charts/
COPY schemas/ schemas/
COPY version/ version/

ARG TARGETOS
ARG TARGETARCH
ARG VERSION=dev
ARG COMMIT=
RUN CGO_ENABLED=0 GOOS=${TARGETOS:-linux} GOARCH=${TARGETARCH} go build -trimpath \
    -ldflags "-s -w -X github.com/example/memcached-operator/version.Version=${VERSION} -X github.com/example/memcached-operator/version.Commit=${COMMIT}" \
    -o /manager ./cmd/manager

# Neither a shell nor a C library: the manager is static. nonroot is the user 65532. See tools/image for the same image
# made without a container engine.
FROM gcr.io/distroless/static:nonroot
ARG VERSION=dev
ARG COMMIT=
LABEL org.opencontainers.image.title="memcached-operator" \
      org.opencontainers.image.description="Serves the custom resource Memcached from a CUE schema and a Helm chart." \
      org.opencontainers.image.source="https://github.com/example/memcached-operator" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.revision="${COMMIT}"
WORKDIR /
COPY --from=build /manager /manager
# By number, so that the kubelet can tell that it is not root.
USER 65532:65532
ENTRYPOINT ["/manager"]
