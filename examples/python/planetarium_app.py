"""A planetarium that shows its visitors' messages in the dome. It sells places, and makes a video for each of them.

Sekisho keeps count of the places, hears of the payments, asks for the videos and gives the money back when it must.
"""

import json
import os
import time
import uuid
from datetime import datetime, timedelta, timezone
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

import requests
from standardwebhooks import Webhook, WebhookVerificationError

SEKISHO = os.environ.get("SEKISHO_URL", "http://127.0.0.1:8787")
KEY = os.environ["SEKISHO_KEY"]
WEBHOOK = Webhook(os.environ["APP_SECRET"])
LIVEMODE = False  # Stripe's test mode
SHOWS = {
    "dome-1:winter-stars": {"title": "Winter stars", "capacity": 3},
    "dome-1:milky-way": {"title": "The Milky Way", "capacity": 80},
}

# --- what a visitor does ---------------------------------------------------------------------------------------------


def book(show, scene, message=None):
    # The order number names the order at Stripe, too. As the idempotency key it makes a repeated request hold once.
    reference = f"PL-{uuid.uuid4()}"
    order = {
        "slot": show,
        "reference": reference,
        "livemode": LIVEMODE,
        "language": "en",
        "payment": {"amount": 1200, "currency": "jpy", "description": SHOWS[show]["title"]},
        "fulfilment": {
            "kind": "video",
            "name": "Message in the stars",
            "tier": "paid",
            "input": {"scene": scene, "message": message},
        },
    }
    # With [checkout] in Sekisho's configuration, Sekisho makes the Checkout Session.
    if "SUCCESS_URL" in os.environ:
        order["checkout"] = {"success_url": os.environ["SUCCESS_URL"]}
    answer = post(f"{SEKISHO}/v1/reservations", KEY, order, {"idempotency-key": reference})
    held = answer.json()
    if answer.status_code == 409:
        return 409, {"error": "sold out", "try_again_in_seconds": held.get("retry_after_seconds")}
    answer.raise_for_status()
    # Without it, make the session yourself, with the reference in metadata.order_id, and send the visitor there.
    return 201, {
        "reference": reference,
        "page": held["customer_url"],
        "pay_until": held["hold_expires_at"],
        "pay_at": held.get("checkout_url"),
    }


# --- what Sekisho tells ----------------------------------------------------------------------------------------------

# A delivery whose answer was lost comes again under the same id. Keep these in your database, with what you do.
SEEN = set()
SEEN_LOCK = Lock()
NEWS = {
    "reservation.confirmed": "{data[reference]}: paid, the place is theirs",
    "reservation.expired": "{data[reference]}: not paid in time, the place is free again",
    "reservation.cancelled": "{data[reference]}: cancelled by {about[by]}",
    "fulfilment.done": "{data[reservation]}: the video is at {about[url]}",
    "fulfilment.failed": "{data[reservation]}: could not be made, refunded at {about[refund_by]}",
}


def hear(event, message_id):
    with SEEN_LOCK:
        if message_id in SEEN:
            return
        SEEN.add(message_id)
    says = NEWS.get(event["type"], "").format(**event)
    # The line and its end in one write: another thread may be printing, too.
    print(json.dumps({"id": event["id"], "type": event["type"], "says": says}) + "\n", end="", flush=True)


# --- the renderer ----------------------------------------------------------------------------------------------------


def render(event):
    about, fulfilment = event["about"], event["data"]
    result = {"run": about["run"], "status": "done", "url": f"https://cdn.example.jp/{fulfilment['id']}.mp4"}
    if fulfilment["input"]["scene"] == 13:
        result = {"run": about["run"], "status": "failed", "error": "out of memory"}
    # The token speaks for this run only; a repeated result does not count.
    for _ in range(20):
        try:
            if post(about["result_url"], about["result_token"], result).status_code < 500:
                return
        except requests.RequestException:
            pass
        time.sleep(0.5)


# --- over HTTP -------------------------------------------------------------------------------------------------------


def post(url, key, body, headers=None):
    headers = {"authorization": f"Bearer {key}", **(headers or {})}
    return requests.post(url, json=body, headers=headers, timeout=10)


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.path == "/book":
            return self.answer(*book(**json.loads(body)))
        try:
            event = WEBHOOK.verify(body, dict(self.headers))
        except WebhookVerificationError as error:
            return self.send_error(400, explain=str(error))
        if self.path == "/render":
            Thread(target=render, args=[event]).start()
            return self.answer(202)  # at once: who asks does not wait for the video
        hear(event, self.headers["webhook-id"])
        self.answer(204)

    def answer(self, status, body=None):
        self.send_response(status)
        self.end_headers()
        if body is not None:
            self.wfile.write(json.dumps(body).encode())


# The same again changes nothing.
STARTS_AT = (datetime.now(timezone.utc) + timedelta(days=7)).isoformat()
for slot, show in SHOWS.items():
    made = {"id": slot, **show, "starts_at": STARTS_AT, "livemode": LIVEMODE}
    post(f"{SEKISHO}/v1/slots", KEY, made).raise_for_status()
ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "4242"))), Handler).serve_forever()
