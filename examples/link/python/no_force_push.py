"""A whole judge in Python: it stops pushes that rewrite history."""

import json
import os
import re
import signal
import sys
import threading
from datetime import datetime, timezone

import plain_nats

LINK, VERSION = "no-force-push", "1.0.0"
NODE = os.environ.get("ASSENT_NODE", "main")


def judge(request):
    for entry in request["asks"]:
        words = entry["value"].split()
        if entry["surface"] == "bash" and "push" in words and "--force" in words:
            return "deny", "A forced push rewrites history for everybody. Push without --force, or use --force-with-lease."
    return "defer", "no forced push"


def answer(nc, reply, body):
    # The reply subject is the sender's choice: only a gate's inbox is answered.
    if not re.fullmatch(r"_INBOX\.gate\.[A-Za-z0-9_-]{1,64}\.[A-Za-z0-9_.-]+", reply):
        return
    try:
        request = json.loads(body)
        ask = request["ask"]["id"]
        late = datetime.now(timezone.utc) >= datetime.fromisoformat(re.sub(r"(\.\d{1,6})?\d*Z$", r"\1+00:00", request["deadline"]))
        if request["v"] != 1 or request["link"] != LINK or not request["log"].startswith(f"assent.v1.{NODE}.log."):
            raise ValueError("not a request for this link")
    except (ValueError, KeyError, TypeError) as broken:
        fault = {"v": 1, "ask": "", "error": {"code": "invalid", "message": str(broken)[:300], "remedy": "send a link request of version 1"}}
        nc.publish(reply, fault, {"Nats-Service-Error-Code": "invalid", "Nats-Service-Error": "invalid"})
        return
    verdict = {"v": 1, "ask": ask, "verdict": "defer", "reason": "", "failure": "expired"}
    if not late:
        try:
            headers, _ = nc.request(request["log"], {"v": 1, "level": "debug", "event": "accepted"}, 0.5)
            if "Nats-Service-Error-Code" in headers:
                return  # nobody waits for this verdict
        except TimeoutError:
            pass  # slow to take the record; it may still wait for the verdict
        try:
            verdict["verdict"], verdict["reason"] = judge(request)
            verdict["failure"] = ""
        except Exception as error:  # whatever it is, no answer is never a yes
            verdict.update(verdict="defer", reason=repr(error)[:300], failure="error")
    nc.publish(reply, verdict)


def announce(nc):
    """Answers discovery, as a NATS micro service does. It grants nothing."""
    info = {
        "name": "assent-link", "id": os.urandom(8).hex(), "version": VERSION, "description": "a judge",
        "metadata": {"link": LINK, "node": NODE, "version": VERSION, "health": "ok"},
    }
    for verb, more in (("PING", {}), ("INFO", {"endpoints": []})):
        said = info | more | {"type": f"io.nats.micro.v1.{verb.lower()}_response"}
        for subject in (f"$SRV.{verb}", f"$SRV.{verb}.{info['name']}", f"$SRV.{verb}.{info['name']}.{info['id']}"):
            yield nc.subscribe(subject, None, lambda reply, _, __, said=said: nc.publish(reply, said))


def main():
    url, creds = os.environ.get("ASSENT_NATS"), os.environ.get("ASSENT_CREDS")
    if not url or not creds:
        sys.exit(f"set ASSENT_NATS to the server's address and ASSENT_CREDS to a file that `assent creds issue --role judge --name {LINK} --out FILE` writes")
    try:
        serve(plain_nats.Connection(url, creds))
    except PermissionError as refused:
        sys.exit(f"link {LINK}: {refused}: issue the credential for this link, on node {NODE}")
    except (OSError, ValueError) as broken:
        sys.exit(f"link {LINK}: {broken}")


def serve(nc):
    told = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: told.set())
    link = nc.subscribe(f"assent.v1.{NODE}.link.{LINK}", LINK, lambda reply, _, body: answer(nc, reply, body))
    services = list(announce(nc))
    nc.flush()
    print(f"link {LINK} serves", flush=True)
    while not told.wait(0.2):
        if nc.closed.is_set():
            sys.exit("the connection is lost")  # whoever started it starts it again
    for sid in [*services, link]:
        nc.unsubscribe(sid)
    nc.drain()


if __name__ == "__main__":
    main()
