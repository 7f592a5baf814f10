"""A webhook handler with the Standard Webhooks library. It knows nothing of Sekisho."""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks import Webhook, WebhookVerificationError

WEBHOOK = Webhook(os.environ["APP_SECRET"])


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            event = WEBHOOK.verify(body, dict(self.headers))
        except WebhookVerificationError as error:
            return self.send_error(400, explain=str(error))
        # The line and its end in one write: another thread may be printing, too.
        print(json.dumps({"id": event["id"], "type": event["type"]}) + "\n", end="", flush=True)
        self.send_response(200)
        self.end_headers()


ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "4242"))), Handler).serve_forever()
