import errno
import os

import pytest
from tests.faults.certificates import Authority

from bayplan.api.errors import CredentialsError
from bayplan.api.kubeconfig import PemSource
from bayplan.api.trust import ReloadedFiles
from bayplan.server.serving_tls import checked_identity


class Pair:
    """A certificate and its key on disk, looked at by a clock of its own."""

    def __init__(self, folder):
        self.certificate, self.key = folder / "tls.crt", folder / "tls.key"
        self.now = 0.0
        self.put(*Authority().issue("a", []))
        sources = [PemSource("--tls-cert-file", path=self.certificate), PemSource("--key", path=self.key)]
        self.told = []
        self.files = ReloadedFiles(sources, checked_identity, self.told.append, clock=lambda: self.now)

    def put(self, certificate=None, key=None):
        for path, content in ((self.certificate, certificate), (self.key, key)):
            if content is not None:
                # As the kubelet does: another file under the same name.
                path.with_suffix(".new").write_bytes(content)
                path.with_suffix(".new").replace(path)

    def after(self, seconds=1.0):
        self.now += seconds
        return self.files.current()


@pytest.fixture
def pair(tmp_path):
    return Pair(tmp_path)


def test_a_rotated_pair_is_in_force_within_a_second(pair):
    before = pair.after()
    new = Authority().issue("b", [])
    pair.put(*new)
    assert pair.files.current() == before
    assert pair.after() == checked_identity(*new)


def test_between_two_halves_of_a_rotation_the_old_pair_stays(pair):
    before = pair.after()
    certificate, key = Authority().issue("b", [])
    pair.put(certificate)
    assert [pair.after() for _ in range(5)] == [before] * 5
    (error,) = pair.told
    assert isinstance(error, CredentialsError)
    pair.put(None, key)
    assert pair.after() == checked_identity(certificate, key)
    assert pair.told == [error, None]


@pytest.mark.parametrize("change", [lambda pair: pair.key.unlink(), lambda pair: pair.put(b"nonsense")])
def test_what_cannot_be_read_keeps_what_there_was(pair, change):
    before = pair.after()
    change(pair)
    assert pair.after() == before
    assert "PRIVATE" not in str(pair.told)


def test_a_file_that_is_touched_makes_nothing_new(pair):
    before = pair.after()
    os.utime(pair.key)
    assert pair.after() is before
    assert pair.told == []


def test_the_first_time_it_has_to_work(tmp_path):
    with pytest.raises(CredentialsError, match="--tls-cert-file: cannot read"):
        ReloadedFiles([PemSource("--tls-cert-file", path=tmp_path / "none")], lambda pem: pem)


def test_a_read_that_failed_for_want_of_something_else_is_tried_again(pair, monkeypatch):
    before = pair.after()
    new = Authority().issue("b", [])
    pair.put(*new)

    def short_of_descriptors(self):
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(PemSource, "read", short_of_descriptors)
        assert [pair.after() for _ in range(3)] == [before] * 3
    assert pair.after() == checked_identity(*new)
    assert [type(each) for each in pair.told] == [OSError, type(None)]


def test_a_certificate_that_only_openssl_knows_is_refused_and_the_old_pair_stays(pair):
    before = pair.after()
    certificate, key = Authority().issue("b", [])
    pair.put(certificate.replace(b"BEGIN CERT", b"BEGIN TRUSTED CERT").replace(b"END CERT", b"END TRUSTED CERT"), key)
    assert pair.after() == before
