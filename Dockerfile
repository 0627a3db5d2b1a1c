# evenload in a container: docs/install.md#containers.
#
#     docker build -t evenload .
#     docker run --rm -v "$PWD:/work" evenload compare
#
# With GPUs, on a base that has CUDA, cuDNN and NCCL, and their headers:
#
#     docker build -t evenload --build-arg BASE=nvidia/cuda:13.0.1-cudnn-devel-ubuntu24.04 .
#     docker run --rm --gpus all --ipc host -v "$PWD:/work" evenload compare
ARG BASE=debian:12
FROM ${BASE}
ENV DEBIAN_FRONTEND=noninteractive
COPY . /opt/evenload
WORKDIR /opt/evenload
RUN scripts/setup
RUN make -j"$(nproc)" && make install && make clean
WORKDIR /work
ENTRYPOINT ["evenload"]
CMD ["help"]
