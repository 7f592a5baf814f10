"""A mail server with a library of its own: STARTTLS, a login, a size. Prints a line of JSON for each mail it takes."""

import asyncio
import json
import ssl
import sys
from email import message_from_bytes, policy

from aiosmtpd.smtp import SMTP, AuthResult

PORT, FOLDER, USER, PASSWORD = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]


class Taker:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("nobody@"):
            return "550 5.1.1 no such user"
        if address.startswith("busy@"):
            return "451 4.2.0 busy, come again"
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 Ok"

    async def handle_DATA(self, server, session, envelope):
        mail = message_from_bytes(envelope.content, policy=policy.default)
        part = lambda kind: mail.get_body((kind,)).get_content()
        print(json.dumps({
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "encrypted": session.ssl is not None,
            "subject": mail["subject"],
            "name": mail["to"].addresses[0].display_name,
            "id": mail["message-id"],
            "text": part("plain"),
            "html": part("html"),
            "defects": [str(defect) for one in mail.walk() for defect in one.defects],
        }), flush=True)
        return "250 2.0.0 Ok: queued as REAL1"


def authenticate(server, session, envelope, mechanism, data):
    right = data.login == USER.encode() and data.password == PASSWORD.encode()
    # Not handled: the library says no itself.
    return AuthResult(success=right, handled=False)


async def main():
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(f"{FOLDER}/certificate.pem", f"{FOLDER}/key.pem")
    loop = asyncio.get_running_loop()
    serve = lambda: SMTP(
        Taker(), hostname="real.example", tls_context=tls, require_starttls=True, authenticator=authenticate,
        auth_required=True, data_size_limit=100_000, loop=loop,
    )
    server = await loop.create_server(serve, "127.0.0.1", PORT)
    await server.serve_forever()


asyncio.run(main())
