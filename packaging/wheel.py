#!/usr/bin/env python3
"""Packs an installation (`make install` with an empty PREFIX) as a Python wheel: usage: wheel.py VERSION FOLDER OUT-FOLDER

A wheel's `.data/scripts` and `.data/data` become bin/ and the prefix of an environment, where the program finds its files as in any
installation. Libraries that the program and its modules need come along in lib/evenload/libs, with their licences; libc's and
libstdc++ do not, which every Linux has (the list is that of PEP 600's policies), nor MPI's and CUDA's, which belong to the machine.
The same files give the same bytes."""
import base64
import hashlib
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import zipfile

EVERYWHERE = r"(linux-vdso|ld-linux.*|libc|libm|libdl|librt|libpthread|libgcc_s|libstdc\+\+|libz)\.so.*"
OF_THE_MACHINE = ("el_mpi.so", "el_cuda.so", "el_cudnn.so", "el_nccl.so")
LIBS = "$ORIGIN/../libs"


def output_of(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def copy_libraries(image, libs, licences):
    """What the files need, and their licences by the package manager, where Debian's is there."""
    for file in [image / "bin/evenload", *image.glob("lib/evenload/modules/*.so")]:
        if file.name in OF_THE_MACHINE:
            continue
        for name, path in re.findall(r"^\s*(\S+) => (not found|/\S+)", output_of("ldd", file), re.M):
            if re.fullmatch(EVERYWHERE, name) or (libs / name).exists():
                continue
            if path == "not found":
                sys.exit(f"wheel.py: {file}: {name} is not found: set LD_LIBRARY_PATH to its folder")
            shutil.copy(path, libs / name)
            if shutil.which("dpkg"):
                owner = subprocess.run(["dpkg", "-S", os.path.realpath(path)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
                text = pathlib.Path("/usr/share/doc", owner.stdout.split(":")[0], "copyright")
                if owner.returncode == 0 and text.exists():
                    shutil.copy(text, licences / f"{name}.copyright")


def settle(file):
    """Strips what is for debugging; a path of the building machine gives way to the wheel's own libraries."""
    subprocess.run(["strip", "-g", file], check=True)
    for path in re.findall(r"\((?:RUNPATH|RPATH)\).*\[(.*)\]", output_of("readelf", "-d", file)):
        kept = ":".join([part for part in path.split(":") if part.startswith(("$ORIGIN", "/usr/local/cuda/"))] or [LIBS])
        if len(kept) > len(path):
            sys.exit(f"wheel.py: {file}: no room for {kept} in place of {path}: build with a longer LIBS_PREFIX")
        if kept != path:
            file.write_bytes(file.read_bytes().replace(path.encode() + b"\0", kept.encode().ljust(len(path) + 1, b"\0")))


def tag_of(binaries):
    """The oldest glibc that has the symbols which the files need: pip takes the wheel on that one and newer."""
    found = re.findall(r"\(GLIBC_2\.(\d+)", "".join(output_of("objdump", "-T", file) for file in binaries))
    return f"py3-none-manylinux_2_{max(map(int, found))}_{platform.machine()}"


def main(version, folder, out):
    image = pathlib.Path(folder)
    info, data = f"evenload-{version}.dist-info", f"evenload-{version}.data"
    libs, licences = image / "lib/evenload/libs", image / "licenses"
    libs.mkdir()
    licences.mkdir()
    shutil.copy("LICENSE", licences)
    copy_libraries(image, libs, licences)
    binaries = [image / "bin/evenload", *sorted(image.glob("lib/evenload/*/*.so*"))]
    for file in binaries:
        settle(file)
    tag = tag_of(binaries)
    members = {
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: evenload\nVersion: {version}\nLicense: MIT\n"
        "Summary: Compares the ways of training one model on several devices\n"
        "Description-Content-Type: text/markdown\n\n".encode() + pathlib.Path("README.md").read_bytes(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nGenerator: evenload\nRoot-Is-Purelib: false\nTag: {tag}\n".encode(),
    }
    for file in image.rglob("*"):
        if file.is_file():
            top, _, rest = file.relative_to(image).as_posix().partition("/")
            place = {"bin": f"{data}/scripts", "licenses": f"{info}/licenses"}.get(top, f"{data}/data/{top}")
            members[f"{place}/{rest}"] = file.read_bytes()
    digests = ((name, base64.urlsafe_b64encode(hashlib.sha256(text).digest()).decode().rstrip("="), len(text)) for name, text in sorted(members.items()))
    record = "".join(f"{name},sha256={digest},{size}\n" for name, digest, size in digests) + f"{info}/RECORD,,\n"
    path = pathlib.Path(out, f"evenload-{version}-{tag}.whl")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as wheel:
        for name, text in [*sorted(members.items()), (f"{info}/RECORD", record.encode())]:
            member = zipfile.ZipInfo(name)  # of 1980, as zip has nothing earlier
            member.external_attr = (0o100755 if "/scripts/" in name else 0o100644) << 16
            wheel.writestr(member, text, zipfile.ZIP_DEFLATED)
    print(path)


if len(sys.argv) != 4:
    sys.exit(__doc__)
main(*sys.argv[1:])
