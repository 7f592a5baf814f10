// A webhook handler as Stripe's documentation has every shop write it. It knows nothing of Sekisho.
import { createServer } from "node:http";
import Stripe from "stripe";

const stripe = new Stripe("sk_test_never_called");
const secret = process.env.APP_SECRET;

const server = createServer(async (request, response) => {
    // The raw bytes: a body that was parsed and written again has another signature.
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    let event;
    try {
        event = stripe.webhooks.constructEvent(Buffer.concat(chunks), request.headers["stripe-signature"], secret);
    } catch (error) {
        console.error(error.message);
        response.writeHead(400).end(`Webhook Error: ${error.message}`);
        return;
    }
    console.log(JSON.stringify({ id: event.id, type: event.type }));
    response.writeHead(200, { "content-type": "application/json" }).end('{"received":true}');
});
server.listen(process.env.PORT ?? 4242, "127.0.0.1");
