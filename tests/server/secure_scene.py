"""A secure port before a fake API server that knows some users, and clients of it."""

import asyncio
import contextlib
import ssl
from dataclasses import dataclass, field

from aiohttp import ClientSession, TCPConnector, web
from tests.faults.api_server import FakeApiServer
from tests.faults.certificates import Authority
from tests.server.samples import metrics

from bayplan.api.client import ApiClient
from bayplan.api.credentials import Credentials
from bayplan.server.access import Security
from bayplan.server.health import HealthChecks
from bayplan.server.http import HttpServer
from bayplan.server.options import AuthenticationOptions, AuthorizationOptions
from bayplan.server.reviews import Reviews
from bayplan.server.serving_tls import ServingTls, checked_identity

TOKEN_REVIEWS = "/apis/authentication.k8s.io/v1/tokenreviews"
ACCESS_REVIEWS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
USERS = {"reader-token": "reader", "stranger-token": "stranger"}


def token_review(spec):
    """The status of a TokenReview: some tokens are somebody's."""
    name = USERS.get(spec["token"])
    if name is None:
        return {"user": {}, "error": "invalid bearer token"}
    user = {"username": name, "uid": "u1", "groups": ["team", "system:authenticated"], "extra": {"k": ["v"]}}
    return {"authenticated": True, "user": user}


MAY = frozenset({("get", "/metrics")})


def access_review(spec, may=MAY):
    """The status of a SubjectAccessReview: `reader` and the group `readers` may do these verbs at these paths."""
    attributes = spec["nonResourceAttributes"]
    is_reader = spec["user"] == "reader" or "readers" in spec.get("groups", ())
    return {"allowed": is_reader and (attributes["verb"], attributes["path"]) in may}


@dataclass
class SecurePort:
    """A secure port; what it shows and believes can be changed while it runs."""

    api: FakeApiServer
    server_authority: Authority = field(default_factory=Authority)
    client_authority: bytes | None = None
    port: int = 0
    health: HealthChecks = field(default_factory=HealthChecks)

    def __post_init__(self):
        self.api.reviews.update({TOKEN_REVIEWS: token_review, ACCESS_REVIEWS: access_review})
        self.identity = self.new_identity()

    def new_identity(self):
        return checked_identity(*self.server_authority.issue("bayplan", ["127.0.0.1"]))

    async def start(
        self,
        always_allow=("/healthz", "/readyz", "/livez"),
        token_seconds=10.0,
        denied_seconds=10.0,
        routes=(),
        may=MAY,
    ):
        self.api.reviews[ACCESS_REVIEWS] = lambda spec: access_review(spec, may)

        async def named(_: web.Request) -> web.Response:
            return web.Response(text="named")

        clients = [ApiClient(Credentials(server=self.api.url)) for _ in range(2)]
        self.reviews = Reviews(*clients)
        self.tls = ServingTls(lambda: self.identity, lambda: self.client_authority)
        security = Security(
            self.tls,
            self.reviews,
            AuthenticationOptions(token_seconds=token_seconds),
            AuthorizationOptions(always_allow_paths=always_allow, denied_seconds=denied_seconds),
        )
        self.server = HttpServer(metrics().registry, self.health, routes=[web.get("/named", named), *routes])
        self.port = await self.server.start("127.0.0.1", 0, security)

    async def stop(self):
        await self.server.stop()
        await self.reviews.close()

    def client_context(self, certificate=None, folder=None):
        context = ssl.create_default_context(cadata=self.server_authority.pem.decode())
        context.verify_flags &= ~ssl.VerifyFlags.VERIFY_X509_STRICT
        if certificate is not None:
            file = folder / "client.pem"
            file.write_bytes(b"".join(certificate))
            context.load_cert_chain(file)
        return context

    async def get(self, path, token=None, *, authorization=None, method="GET", context=None, body=None):
        """The status and the text of an answer."""
        header = authorization if authorization is not None else token and f"Bearer {token}"
        headers = {"Authorization": header} if header else {}
        connector = TCPConnector(ssl=context or self.client_context())
        url = f"https://127.0.0.1:{self.port}{path}"
        async with (
            ClientSession(connector=connector) as session,
            session.request(method, url, headers=headers, data=body) as response,
        ):
            return response.status, await response.text()

    def asked(self, path):
        """How many reviews the API server was asked for."""
        return sum(seen.path == path for seen in self.api.requests)

    async def connect(self, **options):
        return await asyncio.open_connection("127.0.0.1", self.port, **options)


@contextlib.asynccontextmanager
async def secure_port(**options):
    async with FakeApiServer() as api:
        port = SecurePort(api)
        await port.start(**options)
        try:
            yield port
        finally:
            await port.stop()
