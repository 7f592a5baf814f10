// Sends a refund as Stripe's Node library writes it. Prints the refund's id, and whether Stripe knew the request.
import Stripe from "stripe";

const [url, key, params, idempotencyKey] = process.argv.slice(2);
const { hostname: host, port } = new URL(url);
const stripe = new Stripe(key, { host, port, protocol: "http", maxNetworkRetries: 0, telemetry: false });
const refund = await stripe.refunds.create(JSON.parse(params), { idempotencyKey });
console.log(JSON.stringify([refund.id, refund.lastResponse.headers["idempotent-replayed"] === "true"]));
