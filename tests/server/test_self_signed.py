import datetime as dt
import ipaddress

import pytest
from cryptography import x509

from bayplan.api.errors import CredentialsError
from bayplan.server.serving_tls import LIFETIME, checked_identity, pair_in, self_signed


def alternatives(pem):
    found = x509.load_pem_x509_certificate(pem).extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return set(found.get_values_for_type(x509.DNSName)), set(found.get_values_for_type(x509.IPAddress))


def test_it_serves_this_host_for_as_long_as_any_process_runs():
    certificate, key = self_signed("")
    assert checked_identity(certificate, key)
    names, addresses = alternatives(certificate)
    assert ("localhost" in names, ipaddress.ip_address("127.0.0.1") in addresses) == (True, True)
    loaded = x509.load_pem_x509_certificate(certificate)
    assert loaded.not_valid_before_utc < dt.datetime.now(dt.UTC) < loaded.not_valid_after_utc
    assert loaded.not_valid_after_utc - loaded.not_valid_before_utc >= LIFETIME


@pytest.mark.parametrize(
    ("address", "named"), [("10.1.2.3", True), ("fd00::1", True), ("0.0.0.0", False), ("::", False)]
)
def test_it_names_the_address_that_it_is_served_at(address, named):
    assert (ipaddress.ip_address(address) in alternatives(self_signed(address)[0])[1]) is named


def test_each_is_another_one():
    assert self_signed("")[0] != self_signed("")[0]


def test_a_folder_gets_a_pair_which_later_starts_find(tmp_path):
    folder = tmp_path / "not" / "there"
    first = [source.read() for source in pair_in(folder, "")]
    assert checked_identity(*first)
    assert (folder / "bayplan.key").stat().st_mode & 0o777 == 0o600
    assert [source.read() for source in pair_in(folder, "")] == first


def test_half_a_pair_is_an_error_and_stays_as_it_is(tmp_path):
    (tmp_path / "bayplan.crt").write_text("mine")
    with pytest.raises(CredentialsError, match=r"--cert-dir: .*bayplan.key: one is there without the other"):
        pair_in(tmp_path, "")
    assert (tmp_path / "bayplan.crt").read_text() == "mine"


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CredentialsError, match="--cert-dir: cannot write"):
        pair_in(tmp_path / "file" / "folder", "")
