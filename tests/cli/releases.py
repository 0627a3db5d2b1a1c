"""NVIDIA's releases as PyPI's wheels have them, for releases.bats.

usage: releases.py PAGE FOLDER [libraries]   for each row of versions in PAGE: a line of it and of its folders of headers in FOLDER, where
                                             they are downloaded at the first use; `libraries`: only the last row of each major version
                                             of CUDA, and at its end the folder of all its libraries
       releases.py HEADER                    the declarations and values in HEADER, for a compiler to hold against the true ones
       releases.py FOLDER NAMES VERSIONS    what is wrong with the libraries in FOLDER: a name that is not there, another version, a call
                                             that does not fail where there is no driver"""
import ctypes
import glob
import os
import re
import subprocess
import sys
import tempfile
import zipfile


def packages_of(cuda, cublas, cudnn, nccl):
    """(package, version) of a row. CUDA's own headers include crt/, which the compiler brings; NVML's headers come with no library."""
    major, minor = cuda.split(".")[:2]
    own = f"-cu{major}"
    of, compiler = (own, "nvcc") if int(major) < 13 else ("", "crt")
    near = f"{major}.{minor}.*"
    libraries = [(f"nvidia-cuda-runtime{of}", cuda), (f"nvidia-cublas{of}", cublas), (f"nvidia-cudnn{own}", cudnn), (f"nvidia-nccl{own}", nccl)]
    return libraries, [(f"nvidia-cuda-{compiler}{of}", near), (f"nvidia-nvml-dev{of}", near)]


def bring(package, version, part, folder):
    """The files under `part` (include, lib) of a wheel, into `folder`; the wheel itself, of up to a GiB, goes away."""
    with tempfile.TemporaryDirectory(dir=os.path.dirname(folder)) as place:
        pip = (sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check", "--no-cache-dir", "--no-deps", "-d", place)
        if subprocess.run([*pip, f"{package}=={version}"], stdout=sys.stderr, check=False).returncode != 0:
            sys.exit(f"{package} {version} could not be downloaded")
        with zipfile.ZipFile(glob.glob(f"{place}/*.whl")[0]) as wheel:
            for name in wheel.namelist():
                if f"/{part}/" in name and not name.endswith(("/", ".py", ".a")):
                    wheel.extract(name, place)
                    os.renames(f"{place}/{name}", f"{folder}/{name.split(f'/{part}/', 1)[1]}")


def print_rows(page, folder, libraries=""):
    with open(page, encoding="utf-8") as file:
        rows = re.findall(r"^\| (11|12|13)([\d.]+) \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|", file.read(), re.M)
    last = {row[0]: row for row in rows}
    os.makedirs(folder, exist_ok=True)
    for major, minor, *others in last.values() if libraries else rows:
        row = [major + minor, *others]
        with_libraries, headers = packages_of(*row)
        places = [f"{folder}/{package}-{version.rstrip('.*')}" for package, version in with_libraries + headers]
        for (package, version), place in zip(with_libraries + headers, places):
            if not os.path.isdir(place):
                bring(package, version, "include", place)
        if libraries:
            places.append(f"{folder}/lib-{row[0]}")
            for package, version in with_libraries:
                bring(package, version, "lib", places[-1])
        print(*row, *places, flush=True)


def redeclare(header):
    """A function that is declared again must be declared the same; its types are those of the true header before it."""
    with open(header, encoding="utf-8") as file:
        text = re.sub(r"/\*.*?\*/", "", file.read(), flags=re.S)
    print(f"#include <{os.path.basename(header)}>")
    print(*re.findall(r"^(?:const )?\w+ \*?\w+\([^;{}]*\);", text, re.M), sep="\n")
    for name, value in re.findall(r"\b((?:cuda|nccl|CUDA_|CUBLAS_|CUDNN_)\w+)(?:,| =) (-?\d+)", text):
        print(f'_Static_assert((long long){name} == {value}, "{name}");')


def ask_libraries(folder, names, versions):
    """In one process, as the program has them. Where there is a driver the calls may succeed."""
    opened = [ctypes.CDLL(glob.glob(f"{folder}/lib{name}.so.*")[0], ctypes.RTLD_GLOBAL) for name in ("cudart", "cublasLt", "cublas", "cudnn", "nccl")]
    runtime, _, cublas, cudnn, nccl = opened
    with open(names, encoding="utf-8") as file:
        for name in file.read().split():
            if not any(hasattr(library, name) for library in opened):
                print(f"no {name}")
    version, handle, failed = ctypes.c_int(), ctypes.c_void_p(), {}
    nccl.ncclGetVersion(ctypes.byref(version))
    cudnn.cudnnGetVersion.restype = ctypes.c_size_t
    base = 1000 if cudnn.cudnnGetVersion() < 90000 else 10000
    found = (cudnn.cudnnGetVersion() // base, cudnn.cudnnGetVersion() % base // 100, version.value // 10000, version.value % 10000 // 100)
    if tuple(map(int, re.match(r"\S+ (\d+)\.(\d+)\S* (\d+)\.(\d+)", versions).groups())) != found:
        print(f"{found} are not {versions}")
    failed["cudaGetDeviceCount"] = runtime.cudaGetDeviceCount(ctypes.byref(version))
    if failed["cudaGetDeviceCount"] != 0:
        failed["cublasCreate"] = cublas.cublasCreate_v2(ctypes.byref(handle))
        failed["cudnnCreate"] = cudnn.cudnnCreate(ctypes.byref(handle))
        failed["ncclCommInitAll"] = nccl.ncclCommInitAll(ctypes.byref(handle), 1, None)
        print(*(f"{call} succeeds without a driver" for call, code in failed.items() if code == 0), sep="\n", end="")


if len(sys.argv) == 4 and sys.argv[3] != "libraries":
    ask_libraries(*sys.argv[1:])
elif len(sys.argv) == 2:
    redeclare(sys.argv[1])
else:
    print_rows(*sys.argv[1:])
