"""A webhook handler as Stripe's documentation has every shop write it. It knows nothing of Sekisho."""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import stripe

SECRET = os.environ["APP_SECRET"]


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        # The raw bytes: a body that was parsed and written again has another signature.
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            event = stripe.Webhook.construct_event(body, self.headers["Stripe-Signature"], SECRET)
        except (ValueError, stripe.SignatureVerificationError) as error:
            return self.send_error(400, explain=str(error))
        # The line and its end in one write: another thread may be printing, too.
        print(json.dumps({"id": event.id, "type": event.type}) + "\n", end="", flush=True)
        self.send_response(200)
        self.end_headers()


ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "4242"))), Handler).serve_forever()
