"""Describes the machine, the code and the load during a benchmark, without which its results mean nothing."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from pathlib import Path
from typing import Any

from benches.processes import ROOT


def facts() -> dict[str, Any]:
    return {
        "system": platform.platform(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "load": os.getloadavg(),
        "commit": _git("rev-parse", "--short", "HEAD"),
        "delta_kernel": _locked("delta_kernel"),
        "changed": bool(_git("status", "--porcelain", "--untracked-files=no")),
    }


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _locked(package: str) -> str | None:
    """Returns the version of a dependency of `benches/kernel`, from its lock file."""
    lock = (ROOT / "benches" / "kernel" / "Cargo.lock").read_text()
    found = re.search(rf'^name = "{package}"\nversion = "(.+)"$', lock, re.MULTILINE)
    return found[1] if found else None


def _git(*arguments: str) -> str | None:
    """Returns the output of a git command; None outside of a git checkout."""
    try:
        return subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, timeout=10, check=True
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None
