"""Builds the Lambda package: our code and its locked dependencies, trimmed, in `.build/lambda/`.

    scripts/package                 for AWS (Linux, arm64)
    scripts/package --arch x86_64   for AWS on x86
    scripts/package --local         for this machine's own interpreter, as ministack runs functions

All functions share one package: an upload of this size costs less than five builds that could differ. The
dependencies are kept in `.build/` by the digest of the lock, so a second run copies files and no more. Modules
are compiled here, because a function cannot write to its own folder and would compile at every cold start.
"""

import argparse
import compileall
import fcntl
import hashlib
import py_compile
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / ".build"
LAMBDA_PYTHON = "3.13"  # as Runtime in template.yaml
ZIP_BUDGET = 50_000_000
# The AWS services that infra/aws/clients.py builds clients of; botocore carries 400 more, 30 MB of them.
SERVICES = {"dynamodb", "s3", "sqs", "secretsmanager", "ssm", "sts", "kms", "bedrock-runtime"}
NOT_DEPLOYED = ("functions/cli", "functions/local", "functions/minting.py", "infra/local")
OURS = ("core", "functions", "infra")


def platform_of(arch: str | None) -> list[str]:
    """pip's arguments for the platform; none for this machine."""
    if arch is None:
        return []
    machine = {"arm64": "aarch64", "x86_64": "x86_64"}[arch]
    tags = [f"manylinux{tag}_{machine}" for tag in ("2014", "_2_17", "_2_28", "_2_34")]
    platforms = [part for tag in tags for part in ("--platform", tag)]
    return [*platforms, "--python-version", LAMBDA_PYTHON, "--implementation", "cp"]


def dependencies(arch: str | None) -> Path:
    """A folder with the locked dependencies for the platform, trimmed and compiled."""
    lock = ROOT / "requirements" / "lambda.lock"
    version = LAMBDA_PYTHON if arch else f"{sys.version_info.major}.{sys.version_info.minor}"
    recipe = lock.read_bytes() + Path(__file__).read_bytes() + f"{arch} {version}".encode()
    home = BUILD / f"lambda-{arch or 'local'}-{hashlib.sha256(recipe).hexdigest()[:12]}"
    if home.exists():
        return home
    part = home.with_suffix(".part")
    shutil.rmtree(part, ignore_errors=True)
    command = [sys.executable, "-m", "pip", "install", "-qq", "--disable-pip-version-check", "--no-compile"]
    command += ["--no-deps", "--require-hashes", "--only-binary=:all:", "--target", str(part)]
    command += [*platform_of(arch), "-r", str(lock)]
    if subprocess.run(command, check=False).returncode:
        sys.exit("noema: pip could not install requirements/lambda.lock for the package; see above")
    trim(part)
    compile_all(part, version)
    part.rename(home)
    return home


def trim(home: Path) -> None:
    """Remove what a function never reads."""
    for each in (home / "botocore" / "data").iterdir():
        if each.is_dir() and each.name not in SERVICES:
            shutil.rmtree(each)
    shutil.rmtree(home / "boto3" / "data", ignore_errors=True)  # of boto3.resource, which we do not use
    shutil.rmtree(home / "bin", ignore_errors=True)
    for each in [*home.rglob("tests"), *home.rglob("__pycache__")]:
        if each.is_dir():
            shutil.rmtree(each)
    for pattern in ("*.pyi", "*.h", "*.a", "*.c", "*.pyx", "*.pxd"):
        for each in home.rglob(pattern):
            each.unlink()


def compile_all(home: Path, version: str) -> None:
    """Byte code beside the source; checked by the source's hash never, for the package does not change."""
    if version == f"{sys.version_info.major}.{sys.version_info.minor}":
        mode = py_compile.PycInvalidationMode.UNCHECKED_HASH
        compileall.compile_dir(home, quiet=1, invalidation_mode=mode, stripdir=str(home))


def assemble(arch: str | None) -> Path:
    """`.build/lambda`: the dependencies, and our code over them."""
    source = dependencies(arch)
    target = BUILD / "lambda"
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(source, target, symlinks=True)
    ignored = {ROOT / each for each in NOT_DEPLOYED}

    def skip(folder: str, names: list[str]) -> set[str]:
        return {name for name in names if Path(folder, name) in ignored or name == "__pycache__"}

    version = LAMBDA_PYTHON if arch else f"{sys.version_info.major}.{sys.version_info.minor}"
    for each in OURS:
        shutil.copytree(ROOT / each, target / each, ignore=skip)
        compile_all(target / each, version)
    return target


def pack(home: Path) -> Path:
    """The zip: the same bytes for the same files."""
    out = BUILD / "lambda.zip"
    part = BUILD / "lambda.zip.part"
    with zipfile.ZipFile(part, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in sorted(each for each in home.rglob("*") if each.is_file()):
            entry = zipfile.ZipInfo(str(file.relative_to(home)), (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.read_bytes())
    part.replace(out)  # whole or not at all: a deployment may be reading the earlier one
    return out


def main() -> None:
    """Build, and tell the sizes."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--arch", choices=["arm64", "x86_64"], default="arm64")
    parser.add_argument("--local", action="store_true", help="for this machine's interpreter")
    given = parser.parse_args()
    BUILD.mkdir(exist_ok=True)
    with (BUILD / "package.lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)  # two builds at once take turns
        home = assemble(None if given.local else given.arch)
        unzipped = sum(each.stat().st_size for each in home.rglob("*") if each.is_file())
        zipped = pack(home).stat().st_size
    print(
        f"package: {zipped / 1e6:.1f} MB zipped, {unzipped / 1e6:.1f} MB unzipped, in .build/lambda and .build/lambda.zip"
    )
    if zipped > ZIP_BUDGET:
        sys.exit(f"noema: the package is over its budget of {ZIP_BUDGET / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
