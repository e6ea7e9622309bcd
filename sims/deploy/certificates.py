"""Certificates for TLS and keys of SuperNodes, made for one deployment.

The authority's own key is used once and never written. Private keys are readable by their owner
alone. `docs/deployment.md` does the same with openssl and ssh-keygen.
"""

import datetime
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

PRIVATE = 0o600


@dataclass(frozen=True)
class Certificates:
    """Files that a SuperLink is started with; SuperNodes and users get the authority alone.

    Attributes:
        authority: certificate of the authority, PEM.
        certificate: of the SuperLink, PEM.
        key: the SuperLink's private key, PEM.
    """

    authority: Path
    certificate: Path
    key: Path


def make_certificates(folder: Path, hosts: Sequence[str], days: int = 365) -> Certificates:
    """Write an authority's certificate and one of a SuperLink that it signed.

    Args:
        folder: where the files go; it exists.
        hosts: names and addresses under which SuperNodes reach the SuperLink.
        days: how long they are valid.
    """
    authority_key, key = _new_key(), _new_key()
    authority = _certificate("fedsbc authority", authority_key, "fedsbc authority", days)
    authority = authority.public_key(authority_key.public_key()).add_extension(
        x509.BasicConstraints(ca=True, path_length=0), critical=True
    )
    server = _certificate(hosts[0], authority_key, "fedsbc authority", days)
    server = server.public_key(key.public_key()).add_extension(
        x509.SubjectAlternativeName([_alternative(host) for host in hosts]), critical=False
    )
    files = Certificates(folder / "ca.pem", folder / "server.pem", folder / "server.key")
    for path, builder in ((files.authority, authority), (files.certificate, server)):
        signed = builder.sign(authority_key, hashes.SHA256())
        path.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    _write_private(files.key, key, serialization.PrivateFormat.PKCS8)
    return files


def make_node_key(folder: Path, name: str) -> tuple[Path, Path]:
    """Write the key pair of a SuperNode (P-384, OpenSSH) and return the private and public file."""
    key = _new_key()
    private, public = folder / name, folder / f"{name}.pub"
    _write_private(private, key, serialization.PrivateFormat.OpenSSH)
    public.write_bytes(
        key.public_key().public_bytes(
            serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
        )
    )
    return private, public


def _new_key() -> ec.EllipticCurvePrivateKey:
    return ec.generate_private_key(ec.SECP384R1())


def _write_private(
    path: Path, key: ec.EllipticCurvePrivateKey, kind: serialization.PrivateFormat
) -> None:
    """Write a private key to a file that never was readable by others."""
    pem = key.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption())
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, PRIVATE)
    with os.fdopen(descriptor, "wb") as file:
        file.write(pem)


def _certificate(
    subject: str, authority_key: ec.EllipticCurvePrivateKey, issuer: str, days: int
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    key_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority_key.public_key())
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(days=days))
        .add_extension(key_id, critical=False)
    )


def _name(common: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common)])


def _alternative(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
