// A handler as QStash's documentation has it, with the official Receiver. It knows nothing of Sekisho.
import { createServer } from "node:http";
import { Receiver } from "@upstash/qstash";

const port = process.env.PORT ?? 4242;
const receiver = new Receiver({
    currentSigningKey: process.env.APP_SECRET,
    nextSigningKey: process.env.APP_SECRET_NEXT ?? process.env.APP_SECRET,
});

const server = createServer(async (request, response) => {
    const chunks = [];
    for await (const chunk of request) chunks.push(chunk);
    const body = Buffer.concat(chunks).toString();
    try {
        // The token names the address it was made for: the `url` of the route, letter for letter.
        const url = `http://127.0.0.1:${port}${request.url}`;
        await receiver.verify({ signature: request.headers["upstash-signature"], body, url });
    } catch (error) {
        console.error(error.message);
        response.writeHead(400).end(`Webhook Error: ${error.message}`);
        return;
    }
    const event = JSON.parse(body);
    console.log(JSON.stringify({ id: event.id, type: event.type }));
    response.writeHead(200).end();
});
server.listen(port, "127.0.0.1");
