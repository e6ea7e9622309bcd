"""A relay between SuperNodes and a SuperLink that is slow, or refuses what is large: for tests.

It ends TLS with the SuperLink's own certificate and speaks HTTP, as a reverse proxy would.
"""

import http.client
import socket
import ssl
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

RECEIVE_BUFFER_BYTES = 8192
UPLOADS = "/v1/fleet/push-object"
SLICES_PER_S = 20


class Relay(ThreadingHTTPServer):
    """Listens on a port of its own (`port`) until it is closed; also a context manager.

    Args:
        certificates: of the deployment.
        superlink_port: where requests go.
        up_bytes_s: rate of a node's uploads, all connections together; None for no limit.
        max_body_bytes: a longer upload is answered with 413; None for no limit.
    """

    daemon_threads = True

    def __init__(self, certificates, superlink_port, *, up_bytes_s=None, max_body_bytes=None):
        super().__init__(("127.0.0.1", 0), Handler, bind_and_activate=False)
        # What a sender has sent must not lie in our buffers: its link is slow.
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER_BYTES)
        self.server_bind()
        self.server_activate()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificates.certificate, certificates.key)
        self.socket = context.wrap_socket(
            self.socket, server_side=True, do_handshake_on_connect=False
        )
        self.trusted = ssl.create_default_context(cafile=certificates.authority)
        self.superlink_port = superlink_port
        self.up_bytes_s, self.max_body_bytes = up_bytes_s, max_body_bytes
        self.port = self.server_address[1]
        self.uploads = []  # (bytes, status)
        self.link = threading.Lock()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def __exit__(self, *_):
        self.shutdown()
        self.server_close()

    def handle_error(self, request, client_address):
        """Say nothing: a node that is killed, or gives up, drops its connections."""


class Handler(BaseHTTPRequestHandler):
    """Passes requests on, one connection to the SuperLink for each."""

    protocol_version = "HTTP/1.1"
    server: Relay

    def do_POST(self):
        relay, is_upload = self.server, self.path.startswith(UPLOADS)
        body = self._read(int(self.headers.get("Content-Length", 0)), is_upload)
        limit = relay.max_body_bytes
        if is_upload and limit is not None and len(body) > limit:
            status, headers, answer = 413, [], b"too large"
        else:
            status, headers, answer = self._pass_on(body)
        if is_upload:
            relay.uploads.append((len(body), status))
        self.send_response(status)
        for name, value in headers:
            if name.lower() not in ("content-length", "transfer-encoding", "date", "server"):
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    do_GET = do_POST

    def _read(self, length, is_upload):
        """Read a body, an upload no faster than the link carries it."""
        rate = self.server.up_bytes_s if is_upload else None
        if rate is None:
            return self.rfile.read(length)
        parts, size = [], max(1, rate // SLICES_PER_S)
        while length:
            with self.server.link:
                time.sleep(min(size, length) / rate)
            part = self.rfile.read(min(size, length))
            if not part:
                raise ConnectionError("the node gave up")
            parts.append(part)
            length -= len(part)
        return b"".join(parts)

    def _pass_on(self, body):
        relay = self.server
        connection = http.client.HTTPSConnection(
            "127.0.0.1", relay.superlink_port, context=relay.trusted, timeout=60
        )
        try:
            connection.request(self.command, self.path, body, dict(self.headers))
            response = connection.getresponse()
            return response.status, response.getheaders(), response.read()
        finally:
            connection.close()

    def log_message(self, *_):
        """Say nothing."""
