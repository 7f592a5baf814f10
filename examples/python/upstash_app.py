"""A handler as QStash's documentation has it, with the official Receiver. It knows nothing of Sekisho."""

import json
import os
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from qstash import Receiver
from qstash.errors import SignatureError

PORT = os.environ.get("PORT", "4242")
SECRET = os.environ["APP_SECRET"]
RECEIVER = Receiver(SECRET, os.environ.get("APP_SECRET_NEXT", SECRET))


class Handler(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        # The token names the address it was made for: the `url` of the route, letter for letter.
        url = f"http://127.0.0.1:{PORT}{self.path}"
        try:
            RECEIVER.verify(signature=self.headers["Upstash-Signature"], body=body, url=url)
        except SignatureError as error:
            return self.send_error(400, explain=str(error))
        event = json.loads(body)
        # The line and its end in one write: another thread may be printing, too.
        print(json.dumps({"id": event["id"], "type": event["type"]}) + "\n", end="", flush=True)
        self.send_response(200)
        self.end_headers()


ThreadingHTTPServer(("127.0.0.1", int(PORT)), Handler).serve_forever()
