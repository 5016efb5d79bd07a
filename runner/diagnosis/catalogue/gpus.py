"""What goes wrong between a program and a GPU."""

from runner.diagnosis.facts import Gpu
from runner.diagnosis.known import KnownFailure, Proof, When
from runner.verdict import VerdictWord

_ENDED = (VerdictWord.CRASHED, VerdictWord.MISSING_OUTPUT)
_NO_DEVICE = (
    "no nvidia driver",
    "no cuda-capable device",
    "libcuda.so",
    "cuda driver initialization failed",
    "no cuda gpus are available",
    "torch.cuda.is_available() is false",
    "failed call to cuinit",
    "nvml shared library not found",
    "cuda_error_no_device",
)
_OTHER_DEVICE = ("invalid device ordinal", "torch.cuda.device_count() is 1", "device index out of range")

GPUS = (
    KnownFailure(
        slug="cuda-build-missing",
        title="The image's torch is built without CUDA",
        when=(When(words=_ENDED, gpus=(Gpu.GIVEN, Gpu.ABSENT), marks=("torch not compiled with cuda enabled",)),),
        cause="the packages in the image are those for the CPU, though the program wants a GPU",
        fix="install the CUDA build of the package, as from a pytorch/pytorch:…-cuda…-runtime base image",
        tested=Proof.REPLAYED,
    ),
    KnownFailure(
        slug="cuda-not-on-this-host",
        title="The challenge gives a GPU, and this host has none",
        when=(When(words=_ENDED, gpus=(Gpu.ABSENT,), marks=_NO_DEVICE),),
        cause="the program needs a GPU, which the final run has and this machine has not",
        fix="check it on a machine with a GPU, or let it fall back: "
        "device = 'cuda' if torch.cuda.is_available() else 'cpu'",
        narrows=("library-missing",),
    ),
    KnownFailure(
        slug="cuda-not-in-this-challenge",
        title="The challenge gives no GPU",
        when=(When(words=_ENDED, gpus=(Gpu.NOT_DUE,), marks=(*_NO_DEVICE, "torch not compiled with cuda enabled")),),
        cause="the program needs a GPU, and this challenge gives none",
        fix="run the method on the CPU: device = 'cpu', and torch.load(…, map_location='cpu')",
        narrows=("library-missing",),
    ),
    KnownFailure(
        slug="cuda-not-found",
        title="The program does not find the GPU it is given",
        when=(When(words=_ENDED, gpus=(Gpu.GIVEN,), marks=_NO_DEVICE),),
        cause="the container has a GPU and the program does not see it: the image carries a libcuda of its own, or the "
        "program sets CUDA_VISIBLE_DEVICES",
        fix="start from an nvidia/cuda or pytorch/pytorch base image, remove libcuda.so from the image, and leave "
        "CUDA_VISIBLE_DEVICES alone",
        tested=Proof.REPLAYED,
        narrows=("library-missing",),
    ),
    KnownFailure(
        slug="cuda-device-number",
        title="The program asks for a second GPU",
        when=(When(words=_ENDED, gpus=(Gpu.GIVEN, Gpu.ABSENT), marks=_OTHER_DEVICE),),
        cause="the program, or the weights it loads, name cuda:1 or higher, and the container sees its GPU as cuda:0",
        fix="use device 'cuda', and torch.load(…, map_location='cuda')",
        tested=Proof.REPLAYED,
    ),
    KnownFailure(
        slug="cuda-out-of-memory",
        title="The GPU's memory was not enough",
        when=(
            When(
                words=_ENDED,
                marks=(
                    "cuda out of memory",
                    "outofmemoryerror: cuda",
                    "cuda_error_out_of_memory",
                    "cublas_status_alloc_failed",
                    "resource_exhausted: out of memory",
                ),
            ),
        ),
        cause="the model, its activations and the batch do not fit into the GPU's memory",
        fix="use smaller batches, torch.inference_mode() and half precision",
        tested=Proof.REPLAYED,
        narrows=("allocation-refused",),
    ),
    KnownFailure(
        slug="no-kernel-image",
        title="The packages are not built for this kind of GPU",
        when=(
            When(
                words=_ENDED,
                marks=(
                    "no kernel image is available",
                    "is not compatible with the current pytorch",
                    "unsupported gpu architecture",
                ),
            ),
        ),
        cause="torch, or an extension of your own, holds no code for this GPU's compute capability: it is older, "
        "or newer",
        fix="install a release that supports this GPU, and build extensions with TORCH_CUDA_ARCH_LIST for it",
        tested=Proof.REPLAYED,
    ),
    KnownFailure(
        slug="driver-too-old",
        title="The host's driver is older than the image's CUDA",
        when=(
            When(
                words=_ENDED,
                marks=(
                    "cuda driver version is insufficient",
                    "driver on your system is too old",
                    "forward compatibility was attempted",
                    "cuda_error_unsupported_ptx_version",
                    "unsatisfied condition: cuda>=",
                ),
            ),
        ),
        cause="the image's CUDA is newer than the driver of the host, which the organisers choose",
        fix="use an image with the CUDA release that the challenge names, or an older one",
        tested=Proof.REPLAYED,
    ),
    KnownFailure(
        slug="deterministic-algorithms",
        title="An operation has no deterministic version",
        when=(
            When(
                words=_ENDED,
                marks=(
                    "does not have a deterministic implementation",
                    "cublas_workspace_config",
                    "torch.use_deterministic_algorithms",
                ),
            ),
        ),
        cause="the program asks for deterministic algorithms, and an operation has none, or cuBLAS is not told how",
        fix="ENV CUBLAS_WORKSPACE_CONFIG=:4096:8, and torch.use_deterministic_algorithms(True, warn_only=True)",
        tested=Proof.REPLAYED,
    ),
)
