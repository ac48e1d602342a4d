import asyncio
import http.client
from types import SimpleNamespace

import boto3
import pytest
from botocore.auth import S3SigV4Auth
from botocore.awsrequest import AWSRequest
from shoal_local_aws.origin_check import install, is_allowed
from tests.local_aws.waiting import PATIENCE

HERE = (b"host", b"127.0.0.1:4566")


def status(aws, method, path="/_ministack/health", **headers):
    connection = http.client.HTTPConnection("127.0.0.1", aws.port, timeout=PATIENCE)
    try:
        connection.request(method, path, headers={each.replace("_", "-"): headers[each] for each in headers})
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("method", ["OPTIONS", "GET", "POST"])
def test_clients_are_served_and_web_pages_refused(aws, method):
    assert status(aws, "GET") == 200
    foreign = ({"Origin": "https://example.com"}, {"Origin": "null"}, {"Sec_Fetch_Site": "cross-site"})
    for headers in (*foreign, {"Host": "127.0.0.1.example.com"}):
        assert status(aws, method, **headers) == 403


def test_ministacks_unsigned_requests_are_refused(aws):
    s3 = boto3.Session().client("s3")
    s3.create_bucket(Bucket="kept")
    for method, path in (
        ("POST", "/_ministack/reset"),
        ("POST", "/_ministack/config"),
        ("GET", "/_ministack/lambda-code/any"),
        ("GET", "/_ministack/sqs/messages"),
        ("POST", "/_localstack/state/reset"),
    ):
        assert status(aws, method, path) == 403
    s3.head_bucket(Bucket="kept")


@pytest.mark.parametrize(
    ("headers", "welcome"),
    [
        *(
            ([(b"host", host)], True)
            for host in (b"127.0.0.1", b"LOCALHOST", b"localhost:4566", b"bucket.localhost:1", b"b.s3.127.0.0.1:1")
        ),
        *(([(b"host", host)], False) for host in (b"", b"evil127.0.0.1", b"notlocalhost", b"localhost.example.com")),
        ([], False),
        ([HERE, HERE], False),
        ([HERE, (b"origin", b"http://127.0.0.1:4566")], False),
        ([HERE, (b"sec-fetch-site", b"none")], False),
    ],
)
def test_hosts_and_browser_headers_decide_about_a_request(headers, welcome):
    assert is_allowed(headers) is welcome


@pytest.mark.parametrize(
    ("headers", "sent", "served"),
    [([HERE, (b"origin", b"null")], [{"type": "websocket.close", "code": 1008}], []), ([HERE], [], ["websocket"])],
    ids=["page", "client"],
)
def test_websockets_are_served_only_to_clients(headers, sent, served, monkeypatch):
    done = ([], [])

    async def serve(scope, *_):
        done[1].append(scope["type"])

    async def send(message):
        done[0].append(message)

    monkeypatch.setattr("shoal_local_aws.origin_check.routing.serve", seam := SimpleNamespace(now=serve))
    seam.put = lambda guarded: setattr(seam, "now", guarded)
    install()
    asyncio.run(seam.now({"type": "websocket", "headers": headers}, None, send))
    assert done == (sent, served)


def test_a_bucket_may_be_in_the_hosts_name(aws):
    s3 = boto3.Session().client("s3")
    s3.create_bucket(Bucket="named")
    s3.put_object(Bucket="named", Key="x", Body=b"content")
    status = AWSRequest("GET", f"http://named.127.0.0.1:{aws.port}/x")
    session = boto3.Session()
    S3SigV4Auth(session.get_credentials(), "s3", session.region_name).add_auth(status)
    connection = http.client.HTTPConnection("127.0.0.1", aws.port, timeout=PATIENCE)
    connection.request("GET", "/x", headers={"Host": f"named.127.0.0.1:{aws.port}", **status.headers})
    assert connection.getresponse().read() == b"content"
    connection.close()
