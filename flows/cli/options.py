"""Options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

DEPLOYMENTS = "goodput"
"""Name of the deployments on a Prefect server, where none is given."""

ConfigOption = Annotated[
    Path | None, Parameter(help="Configuration file; goodput.toml in the working folder if not given.")
]
JsonOption = Annotated[bool, Parameter(help="Print JSON.")]
