"""certs - certificates for tests, made while they run by the openssl command.

    ca = Authority()
    server = ca.issue("server", hosts=("localhost", "127.0.0.1"))
    server.certificate, server.key, ca.certificate       # PEM files

Everything lies in temporary directories. Keys are of P-256, which are made in a moment.
"""
# SPDX-License-Identifier: BSD-3-Clause

import ipaddress
import os
import ssl
import subprocess

from servers import temporary_directory

LOOPBACK = ("localhost", "127.0.0.1", "::1")


def _openssl(*arguments):
    done = subprocess.run(["openssl", *arguments], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, "openssl %s: %s" % (" ".join(arguments), done.stderr)


def _names(hosts):
    """The extension that names hosts: numbers as addresses, the rest as DNS names."""
    names = []
    for host in hosts:
        try:
            names.append("IP:%s" % ipaddress.ip_address(host))
        except ValueError:
            names.append("DNS:%s" % host)
    return ",".join(names)


class Certificate:
    """PEM files of a certificate and its key; `name` is its common name."""

    def __init__(self, directory, stem, name):
        self.name = name
        self.certificate = os.path.join(directory, stem + ".crt")
        self.key = os.path.join(directory, stem + ".key")

    def copy_to(self, other):
        """Puts the content of this pair into the files of `other`, each by a rename."""
        for mine, theirs in (self.certificate, other.certificate), (self.key, other.key):
            with open(mine) as text:
                content = text.read()
            with open(theirs + ".new", "w", opener=lambda path, flags:
                      os.open(path, flags, 0o600)) as out:
                out.write(content)
            os.rename(theirs + ".new", theirs)


class Authority(Certificate):
    """A certificate authority of its own, which nobody else knows."""

    def __init__(self, name="tests' authority"):
        self.directory = temporary_directory("hg-ca-")
        self.count = 0
        super().__init__(self.directory, "ca", name)
        _openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                 "-keyout", self.key, "-out", self.certificate, "-days", "30",
                 "-subj", "/CN=%s" % name.replace("/", "\\/"),
                 "-addext", "basicConstraints=critical,CA:TRUE",
                 "-addext", "keyUsage=critical,keyCertSign,cRLSign")

    def issue(self, name, hosts=LOOPBACK, expired=False, usage="serverAuth,clientAuth", bits=0):
        """A certificate for `name`. hosts: what a client may call it, () for none; expired: since
        yesterday; bits: of an RSA key instead of P-256."""
        self.count += 1
        made = Certificate(self.directory, "cert%d" % self.count, name)
        request, rules = made.certificate + ".csr", made.certificate + ".ext"
        kind = ["rsa:%d" % bits] if bits else ["ec", "-pkeyopt", "ec_paramgen_curve:P-256"]
        _openssl("req", "-new", "-newkey", *kind, "-nodes", "-keyout", made.key, "-out", request,
                 "-subj", "/CN=%s" % name.replace("/", "\\/"))
        with open(rules, "w") as out:
            out.write("basicConstraints=CA:FALSE\nextendedKeyUsage=%s\n" % usage)
            if hosts:
                out.write("subjectAltName=%s\n" % _names(hosts))
        _openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self.key,
                 "-CAcreateserial", "-days", "-1" if expired else "30", "-extfile", rules,
                 "-out", made.certificate)
        return made

    def context(self, shown=None, verify=True):
        """What a client of Python needs to speak TLS with somebody this authority vouches for;
        shown: the certificate it shows itself."""
        context = ssl.create_default_context(cafile=self.certificate)
        if not verify:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if shown:
            context.load_cert_chain(shown.certificate, shown.key)
        return context

    def server_context(self, shown, ask=False):
        """The same of a server that shows `shown`; ask: a client must show one too."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(shown.certificate, shown.key)
        context.load_verify_locations(self.certificate)
        if ask:
            context.verify_mode = ssl.CERT_REQUIRED
        return context


class Tls:
    """How a server of the tests speaks TLS: the certificate it shows; ask: whether a client must
    show one of the same authority. `client` is what the tests need to talk to it, whoever it is."""

    def __init__(self, authority, shown, ask=False):
        self.authority, self.shown, self.ask = authority, shown, ask
        self.client = authority.context(authority.issue("tests") if ask else None, verify=False)
