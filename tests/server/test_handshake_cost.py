import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from bayplan.server.serving_tls import handshake_cost, self_signed, signed


@pytest.mark.parametrize(("bits", "cost"), [(1024, 1.05), (2048, 1.4), (4096, 4.2), (8192, 26.6)])
def test_rsa_costs_by_the_third_power_of_the_length(monkeypatch, bits, cost):
    public = rsa.RSAPublicNumbers(65537, 2 ** (bits - 1) + 1).public_key()
    monkeypatch.setattr("cryptography.x509.load_pem_x509_certificate", lambda _: Shown(public))
    assert handshake_cost(b"") == pytest.approx(cost)


class Shown:
    """A certificate, as far as it matters."""

    def __init__(self, key):
        self._key = key

    def public_key(self):
        return self._key


def test_a_made_certificate_costs_one():
    assert handshake_cost(b"".join(self_signed("127.0.0.1"))) == 1.0


def test_a_larger_curve_costs_more_and_an_edwards_curve_does_not(monkeypatch):
    assert handshake_cost(signed(ec.generate_private_key(ec.SECP384R1()), "127.0.0.1")[0]) == 2.0
    public = ed25519.Ed25519PrivateKey.generate().public_key()
    monkeypatch.setattr("cryptography.x509.load_pem_x509_certificate", lambda _: Shown(public))
    assert handshake_cost(b"") == 1.0
