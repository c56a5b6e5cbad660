"""Plain NATS: as much of its text protocol as a link needs, over one socket.

Of what Python does not bring it needs `cryptography`, for the login. A link that
uses a NATS client of its own needs none of this file.
"""

import base64
import json
import queue
import re
import socket
import threading
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey


class Connection:
    """One connection as a judge's credential; `name` is the credential's."""

    def __init__(self, url, creds_file, workers=8):
        jwt, seed = _read_creds(creds_file)
        self.name = json.loads(_base64url(jwt.split(".")[1]))["name"]
        self.inbox = f"_INBOX.judge.{self.name}"
        self._handlers, self._waiting = {}, {}
        self._count, self._lock, self._pongs = 0, threading.Lock(), queue.Queue()
        self._pool = ThreadPoolExecutor(workers)
        self.closed, self._refused = threading.Event(), ""
        where = urllib.parse.urlsplit(url)
        self._socket = socket.create_connection((where.hostname, where.port or 4222), timeout=10)
        self._socket.settimeout(None)
        self._stream = self._socket.makefile("rb")
        nonce = json.loads(self._stream.readline().split(b" ", 1)[1])["nonce"]
        login = {
            "jwt": jwt, "sig": base64.urlsafe_b64encode(seed.sign(nonce.encode())).rstrip(b"=").decode(),
            "name": "assent judge " + self.name, "lang": "python", "version": "1", "protocol": 1,
            "verbose": False, "pedantic": False, "headers": True, "no_responders": True,
        }
        self._send(f"CONNECT {json.dumps(login)}\r\n".encode())
        threading.Thread(target=self._read, daemon=True).start()
        self.subscribe(self.inbox + ".>", None, self._take_reply, inline=True)
        self.flush()

    def subscribe(self, subject, group, handler, inline=False):
        """Calls handler(reply, headers, body) for each message, in a worker's thread."""
        sid = self._next()
        self._handlers[sid] = handler if inline else lambda *message: self._pool.submit(handler, *message)
        self._send(f"SUB {subject} {group or ''} {sid}\r\n".encode())
        return sid

    def unsubscribe(self, sid):
        self._send(f"UNSUB {sid}\r\n".encode())

    def publish(self, subject, message, headers=None):
        body = json.dumps(message).encode()
        if not headers:
            return self._send(f"PUB {subject} {len(body)}\r\n".encode() + body + b"\r\n")
        head = "NATS/1.0\r\n" + "".join(f"{k}: {v}\r\n" for k, v in headers.items()) + "\r\n"
        head = head.encode()
        self._send(f"HPUB {subject} {len(head)} {len(head) + len(body)}\r\n".encode() + head + body + b"\r\n")

    def request(self, subject, message, seconds):
        """The reply as (headers, body); TimeoutError if none comes."""
        reply, answer = f"{self.inbox}.{self._next()}", queue.Queue(1)
        self._waiting[reply] = answer
        try:
            body = json.dumps(message).encode()
            self._send(f"PUB {subject} {reply} {len(body)}\r\n".encode() + body + b"\r\n")
            return answer.get(timeout=seconds)
        except queue.Empty:
            raise TimeoutError(f"no reply from {subject}") from None
        finally:
            del self._waiting[reply]

    def flush(self):
        """Returns when the server has taken everything that was sent; PermissionError
        if it refused a login or a subscription, which it says beside the answer."""
        self._send(b"PING\r\n")
        try:
            taken = self._pongs.get(timeout=10)
        except queue.Empty:
            raise ConnectionError("the server does not answer") from None
        if self._refused:
            raise PermissionError(self._refused)
        if not taken:
            raise ConnectionError("the connection is lost")

    def drain(self):
        """Ends what is being worked on, sends it and closes."""
        self.flush()
        self._pool.shutdown(wait=True)
        self.flush()
        self._socket.close()

    def _next(self):
        with self._lock:
            self._count += 1
            return str(self._count)

    def _send(self, data):
        with self._lock:
            self._socket.sendall(data)

    def _take_reply(self, headers, body, subject):
        if answer := self._waiting.get(subject):
            answer.put((headers, body))

    def _read(self):
        try:
            while line := self._stream.readline():
                word, *rest = line.split()
                if word == b"PING":
                    self._send(b"PONG\r\n")
                elif word == b"PONG":
                    self._pongs.put(True)
                elif word == b"-ERR":
                    print("NATS:", line.decode().strip(), flush=True)
                    if b"Authorization" in line or b"Subscription" in line:
                        self._refused = line.decode().strip().removeprefix("-ERR ")
                elif word in (b"MSG", b"HMSG"):
                    self._take(word == b"HMSG", [part.decode() for part in rest])
        except OSError:
            pass  # closed
        self.closed.set()
        self._pongs.put(False)

    def _take(self, with_headers, fields):
        size = int(fields[-1])
        head_size = int(fields[-2]) if with_headers else 0
        subject, sid = fields[0], fields[1]
        reply = fields[2] if len(fields) == (5 if with_headers else 4) else ""
        data = self._stream.read(size + 2)[:size]
        headers = dict(re.findall(r"^([^:\r\n]+): *([^\r\n]*)", data[:head_size].decode(), re.M))
        if handler := self._handlers.get(sid):
            if handler == self._take_reply:
                handler(headers, data[head_size:], subject)
            else:
                handler(reply, headers, data[head_size:])


def _read_creds(path):
    with open(path, encoding="ascii") as file:
        jwt, seed = re.findall(r"-----BEGIN [^\n]*-----\s+(\S+)\s+-+END", file.read())
    raw = base64.b32decode(seed + "=" * (-len(seed) % 8))
    return jwt, Ed25519PrivateKey.from_private_bytes(raw[2:34])  # 2 bytes of prefix, 2 of checksum


def _base64url(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
