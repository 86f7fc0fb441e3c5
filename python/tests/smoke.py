"""What must work in an environment with nothing but the wheel: the package without other packages, and its command."""

from __future__ import annotations

import re
import subprocess
import sysconfig
from pathlib import Path

import ropewalk

SCENARIO = Path(__file__).parents[2] / "scenarios/one-link.toml"


def main() -> None:
    scenario = ropewalk.Scenario.load(SCENARIO, set={"duration": "2s"})
    results = scenario.run(seeds=[1, 2])
    assert len(results) == 2 and results.digest
    assert results.flows.to_dict()["flow"] == ["tcp", "tcp"]
    command = Path(sysconfig.get_path("scripts")) / "ropewalk"
    assert command.read_bytes()[:4] == b"\x7fELF", "the command is the program itself"
    version = subprocess.run([command, "--version"], check=True, capture_output=True, text=True).stdout
    # The command names its commit, too: "0.1.0+git20261127135423.06ae08f7ab".
    assert re.split("[+~]", version.split()[1])[0] == ropewalk.__version__
    print(f"ropewalk {ropewalk.__version__} from {Path(ropewalk.__file__).parent}: digest {results.digest}")


if __name__ == "__main__":
    main()
