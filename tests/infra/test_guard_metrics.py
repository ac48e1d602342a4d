from datetime import timedelta

import pytest

HUNDRED_GIB = 100 * 2**30


def test_efs_writes_and_nat_traffic_count_as_spent(deploy, aws):
    small = deploy(kind="Sharing", budget=1000.0)
    small.after(1)
    before = small.account()
    share = aws.folder / "efs" / small.physical("EFS::FileSystem")
    share.mkdir(parents=True)
    with (share / "checkpoint.pt").open("wb") as file:
        file.truncate(HUNDRED_GIB)
    small.after(1.01)
    written = small.account()
    assert written["by_use"] == pytest.approx(100 * 0.06)
    assert written["spent"] - before["spent"] == pytest.approx(6 + 0.01 * before["rate"], rel=0.01)
    gateway = [{"Name": "NatGatewayId", "Value": small.physical("EC2::NatGateway")}]
    at = small.created + timedelta(minutes=30)
    for metric in ("BytesInFromSource", "BytesInFromDestination", "BytesOutToSource", "BytesOutToDestination"):
        point = {"MetricName": metric, "Dimensions": gateway, "Timestamp": at, "Value": HUNDRED_GIB, "Unit": "Bytes"}
        small.client("cloudwatch").put_metric_data(Namespace="AWS/NATGateway", MetricData=[point])
    assert small.invoke(small.age(1.02)) == {}
    assert small.account()["by_use"] == pytest.approx(100 * 0.06 + 200 * 0.045)
