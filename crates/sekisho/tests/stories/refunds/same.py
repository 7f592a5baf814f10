"""Sends a refund as Stripe's Python library writes it. Prints the refund's id, and whether Stripe knew the request."""

import json
import sys

import stripe

url, key, params, idempotency_key = sys.argv[1:]
client = stripe.StripeClient(key, base_addresses={"api": url}, max_network_retries=0)
refund = client.v1.refunds.create(json.loads(params), {"idempotency_key": idempotency_key})
print(json.dumps([refund.id, refund.last_response.headers.get("idempotent-replayed") == "true"]))
