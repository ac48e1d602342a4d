"""What S3 and EFS keep on this machine, and when they let go of it.

Buckets live in ministack's memory. A file system is a folder that every node's `mount` links to; it goes with the
file system.
"""

import shutil
from typing import Any

from ministack.services import efs

from embedded.machine import Machines


def install(machines: Machines) -> None:
    delete = efs._delete_file_system

    def delete_with_its_files(identifier: str) -> Any:
        answer = delete(identifier)
        if answer[0] < 300:
            shutil.rmtree(machines.file_system(identifier), ignore_errors=True)
        return answer

    efs._delete_file_system = delete_with_its_files
