// A planetarium that shows its visitors' messages in the dome. It sells places, and makes a video for each of them.
// Sekisho keeps count of the places, hears of the payments, asks for the videos and gives the money back when it must.
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { Webhook } from "standardwebhooks";

const sekisho = process.env.SEKISHO_URL ?? "http://127.0.0.1:8787";
const webhook = new Webhook(process.env.APP_SECRET);
const livemode = false; // Stripe's test mode
const week = 7 * 24 * 60 * 60 * 1000;
const shows = [
    { id: "dome-1:winter-stars", title: "Winter stars", capacity: 3 },
    { id: "dome-1:milky-way", title: "The Milky Way", capacity: 80 },
];

// --- what a visitor does ---------------------------------------------------------------------------------------------

// The order number names the order at Stripe, too. As the idempotency key it makes a repeated request hold once.
async function book({ show, scene, message }) {
    const order = {
        slot: show,
        reference: `PL-${randomUUID()}`,
        livemode,
        language: "en",
        payment: { amount: 1200, currency: "jpy", description: shows.find(({ id }) => id === show)?.title },
        fulfilment: { kind: "video", name: "Message in the stars", tier: "paid", input: { scene, message } },
    };
    // With [checkout] in Sekisho's configuration, Sekisho makes the Checkout Session.
    if (process.env.SUCCESS_URL) order.checkout = { success_url: process.env.SUCCESS_URL };
    const { status, body } = await post(`${sekisho}/v1/reservations`, process.env.SEKISHO_KEY, order, order.reference);
    if (status === 409) return [409, { error: "sold out", try_again_in_seconds: body.retry_after_seconds }];
    if (status !== 201) throw new Error(`the reservation was refused: ${status} ${JSON.stringify(body)}`);
    // Without it, make the session yourself, with the reference in metadata.order_id, and send the visitor there.
    const { reference, customer_url, hold_expires_at, checkout_url } = body;
    return [201, { reference, page: customer_url, pay_until: hold_expires_at, pay_at: checkout_url }];
}

// --- what Sekisho tells ----------------------------------------------------------------------------------------------

// A delivery whose answer was lost comes again under the same id. Keep these in your database, with what you do.
const seen = new Set();

function hear(event, id) {
    if (seen.has(id)) return;
    seen.add(id);
    const { data, about } = event;
    const news = {
        "reservation.confirmed": () => `${data.reference}: paid, the place is theirs`,
        "reservation.expired": () => `${data.reference}: not paid in time, the place is free again`,
        "reservation.cancelled": () => `${data.reference}: cancelled by ${about.by}`,
        "fulfilment.done": () => `${data.reservation}: the video is at ${about.url}`,
        "fulfilment.failed": () => `${data.reservation}: could not be made, refunded at ${about.refund_by}`,
    };
    console.log(JSON.stringify({ id: event.id, type: event.type, says: news[event.type]?.() }));
}

// --- the renderer ----------------------------------------------------------------------------------------------------

async function render({ data, about }) {
    const { run, result_url, result_token } = about;
    let result = { run, status: "done", url: `https://cdn.example.jp/${data.id}.mp4` };
    if (data.input.scene === 13) result = { run, status: "failed", error: "out of memory" };
    // The token speaks for this run only; a repeated result does not count.
    for (let tries = 0; tries < 20; tries++) {
        const { status } = await post(result_url, result_token, result).catch(() => ({ status: 503 }));
        if (status < 500) return;
        await new Promise((wake) => setTimeout(wake, 500));
    }
}

// --- over HTTP -------------------------------------------------------------------------------------------------------

async function post(url, key, body, idempotencyKey) {
    const headers = { authorization: `Bearer ${key}`, "content-type": "application/json" };
    if (idempotencyKey) headers["idempotency-key"] = idempotencyKey;
    const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
    return { status: answer.status, body: await answer.json() };
}

const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks);
    try {
        if (request.url === "/book") {
            const [status, answer] = await book(JSON.parse(body));
            response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(answer));
            return;
        }
        const event = webhook.verify(body, request.headers);
        if (request.url === "/render") {
            response.writeHead(202).end(); // at once: who asks does not wait for the video
            render(event);
        } else {
            hear(event, request.headers["webhook-id"]);
            response.writeHead(204).end();
        }
    } catch (error) {
        console.error(error.message);
        response.writeHead(400).end(error.message);
    }
});

// The same again changes nothing.
for (const show of shows) {
    const starts_at = new Date(Date.now() + week).toISOString();
    const made = await post(`${sekisho}/v1/slots`, process.env.SEKISHO_KEY, { ...show, starts_at, livemode });
    if (made.status >= 300) throw new Error(`${show.id} was refused: ${JSON.stringify(made.body)}`);
}
server.listen(process.env.PORT ?? 4242, "127.0.0.1");
