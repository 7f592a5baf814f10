"""What Stripe's Python library makes of the fake. Prints one line of JSON."""

import json
import sys

import stripe

url, key, payment_intent = sys.argv[1:]


def open_client(key):
    return stripe.StripeClient(key, base_addresses={"api": url}, max_network_retries=0)


client = open_client(key)


def failure(call):
    try:
        call()
        return "none"
    except stripe.StripeError as error:
        return [type(error).__name__, error.json_body["error"].get("code", "")]


def refund(amount, idempotency_key):
    metadata = {"sekisho_refund": "r/1"}
    params = {"payment_intent": payment_intent, "amount": amount, "metadata": metadata}
    return client.v1.refunds.create(params, {"idempotency_key": idempotency_key})


limited = failure(lambda: refund(400, "k1"))
first = refund(400, "k1")
again = refund(400, "k1")
is_replayed = again.last_response.headers["idempotent-replayed"] == "true"
listed = client.v1.refunds.list({"payment_intent": payment_intent})
events = client.v1.events.list({"limit": 2, "types": ["charge.*", "refund.created"]})
types = [event.type for event in events.auto_paging_iter()]
print(json.dumps({
    "limited": limited,
    "first": [first.status, first.amount, first.metadata["sekisho_refund"]],
    "is_same": first.id == again.id and is_replayed,
    "listed": [one.amount for one in listed.data],
    "other_parameters": failure(lambda: refund(500, "k1")),
    "rest": refund(800, "k2").amount,
    "already": failure(lambda: refund(100, "k3")),
    "missing": failure(lambda: client.v1.charges.list({"payment_intent": "pi_9"})),
    "unauthorized": failure(lambda: open_client("sk_test_wrong_key").v1.events.list()),
    "types": types,
}))
