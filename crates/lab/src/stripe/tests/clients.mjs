// What Stripe's Node library makes of the fake. Prints one line of JSON.
import Stripe from "stripe";

const [url, key, payment_intent] = process.argv.slice(2);
const { hostname: host, port } = new URL(url);
const open = (key) => new Stripe(key, { host, port, protocol: "http", maxNetworkRetries: 0, telemetry: false });
const stripe = open(key);

const failure = async (call) => {
    try {
        await call();
        return "none";
    } catch (error) {
        return [error.type.replace(/^Stripe/, ""), error.code ?? ""];
    }
};
const refund = (amount, idempotencyKey) =>
    stripe.refunds.create({ payment_intent, amount, metadata: { sekisho_refund: "r/1" } }, { idempotencyKey });

const limited = await failure(() => refund(400, "k1"));
const first = await refund(400, "k1");
const again = await refund(400, "k1");
const listed = await stripe.refunds.list({ payment_intent });
const types = [];
for await (const event of stripe.events.list({ limit: 2, types: ["charge.*", "refund.created"] })) {
    types.push(event.type);
}
console.log(JSON.stringify({
    limited,
    first: [first.status, first.amount, first.metadata.sekisho_refund],
    is_same: first.id === again.id && again.lastResponse.headers["idempotent-replayed"] === "true",
    listed: listed.data.map((one) => one.amount),
    other_parameters: await failure(() => refund(500, "k1")),
    rest: (await refund(800, "k2")).amount,
    already: await failure(() => refund(100, "k3")),
    missing: await failure(() => stripe.charges.list({ payment_intent: "pi_9" })),
    unauthorized: await failure(() => open("sk_test_wrong_key").events.list()),
    types,
}));
