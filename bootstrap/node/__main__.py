"""Run this node's agent until it is stopped: `python -m bootstrap.node`.

It reads DEPLOYMENT, DATA_BUCKET, INSTANCE_ID, ADDRESS and RANKS from the environment.
"""

import os

from bootstrap.node.agent import ACTIVITY_SECONDS, serve
from bootstrap.node.machine import spot_notice
from bootstrap.node.node_documents import Member


def main() -> None:
    serve(
        os.environ["DEPLOYMENT"],
        Member(instance=os.environ["INSTANCE_ID"], address=os.environ["ADDRESS"], gpus=int(os.environ["RANKS"])),
        store=f"s3://{os.environ['DATA_BUCKET']}",
        notice=spot_notice,
        activity_seconds=float(os.environ.get("HEARTBEAT_SECONDS", ACTIVITY_SECONDS)),
    )


if __name__ == "__main__":
    main()
