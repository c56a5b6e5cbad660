// A whole judge in TypeScript: it stops pushes that rewrite history.
import { randomBytes } from "node:crypto";
import { readFile } from "node:fs/promises";
import { connect, credsAuthenticator, headers, type Msg, type NatsConnection, type Subscription } from "@nats-io/transport-node";

const LINK = "no-force-push", VERSION = "1.0.0";
const NODE = process.env.ASSENT_NODE ?? "main";

type Entry = { surface: string; value: string; matched_pattern: string; origin: string; unit: number };
type LinkRequest = { v: number; link: string; ask: { id: string }; asks: Entry[]; deadline: string; query: string; log: string };
type Verdict = { v: 1; ask: string; verdict: "allow" | "deny" | "defer"; reason: string; failure: string };

function judge(request: LinkRequest): Pick<Verdict, "verdict" | "reason"> {
  for (const entry of request.asks) {
    const words = entry.value.split(/\s+/);
    if (entry.surface === "bash" && words.includes("push") && words.includes("--force")) {
      return { verdict: "deny", reason: "A forced push rewrites history for everybody. Push without --force, or use --force-with-lease." };
    }
  }
  return { verdict: "defer", reason: "no forced push" };
}

function read(data: Uint8Array): LinkRequest {
  const request = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(data));
  if (request.v !== 1 || request.link !== LINK || typeof request.ask?.id !== "string" || !Array.isArray(request.asks) ||
      Number.isNaN(Date.parse(request.deadline)) || !String(request.log).startsWith(`assent.v1.${NODE}.log.`)) {
    throw new Error("not a request for this link");
  }
  return request;
}

async function answer(nc: NatsConnection, msg: Msg): Promise<void> {
  // The reply subject is the sender's choice: only a gate's inbox is answered.
  if (!/^_INBOX\.gate\.[A-Za-z0-9_-]{1,64}\.[A-Za-z0-9_.-]+$/.test(msg.reply ?? "")) return;
  let request: LinkRequest;
  try {
    request = read(msg.data);
  } catch (broken) {
    const h = headers();
    h.set("Nats-Service-Error-Code", "invalid");
    h.set("Nats-Service-Error", "invalid");
    const error = { code: "invalid", message: String(broken).slice(0, 300), remedy: "send a link request of version 1" };
    msg.respond(JSON.stringify({ v: 1, ask: "", error }), { headers: h });
    return;
  }
  const verdict: Verdict = { v: 1, ask: request.ask.id, verdict: "defer", reason: "", failure: "expired" };
  if (Date.now() < Date.parse(request.deadline)) {
    const accepted = JSON.stringify({ v: 1, level: "debug", event: "accepted" });
    const receipt = await nc.request(request.log, accepted, { timeout: 500 }).catch(() => undefined);
    if (receipt?.headers?.has("Nats-Service-Error-Code")) return; // nobody waits for this verdict
    try {
      Object.assign(verdict, judge(request), { failure: "" });
    } catch (error) { // whatever it is, no answer is never a yes
      Object.assign(verdict, { verdict: "defer", reason: String(error).slice(0, 300), failure: "error" });
    }
  }
  msg.respond(JSON.stringify(verdict));
}

// Answers discovery, as a NATS micro service does. It grants nothing.
function announce(nc: NatsConnection): Subscription[] {
  const metadata = { link: LINK, node: NODE, version: VERSION, health: "ok" };
  const info = { name: "assent-link", id: randomBytes(8).toString("hex"), version: VERSION, description: "a judge", metadata };
  return [["PING", {}] as const, ["INFO", { endpoints: [] }] as const].flatMap(([verb, more]) => {
    const said = JSON.stringify({ ...info, ...more, type: `io.nats.micro.v1.${verb.toLowerCase()}_response` });
    return [`$SRV.${verb}`, `$SRV.${verb}.${info.name}`, `$SRV.${verb}.${info.name}.${info.id}`].map((subject) =>
      nc.subscribe(subject, { callback: (err, msg) => { if (!err) msg.respond(said); } }));
  });
}

function fail(why: string): never {
  console.error(why);
  process.exit(1);
}

if (!process.env.ASSENT_NATS || !process.env.ASSENT_CREDS) {
  fail(`set ASSENT_NATS to the server's address and ASSENT_CREDS to a file that \`assent creds issue --role judge --name ${LINK} --out FILE\` writes`);
}
const creds = await readFile(process.env.ASSENT_CREDS);
const jwt = creds.toString().match(/JWT-----\s+(\S+)/)![1];
const name = JSON.parse(Buffer.from(jwt.split(".")[1], "base64url").toString()).name;
const nc = await connect({
  servers: process.env.ASSENT_NATS, authenticator: credsAuthenticator(creds),
  inboxPrefix: `_INBOX.judge.${name}`, name: `assent judge ${name}`, maxReconnectAttempts: -1,
});
const working = new Set<Promise<void>>();
const take = (msg: Msg) => {
  const work = answer(nc, msg).finally(() => working.delete(work));
  working.add(work);
};
const link = nc.subscribe(`assent.v1.${NODE}.link.${LINK}`, { queue: LINK, callback: (err, msg) => {
  if (err) fail(`link ${LINK}: ${err.message}: issue the credential for this link, on node ${NODE}`); // it would serve in vain
  take(msg);
} });
const services = announce(nc);
await nc.flush();
console.log(`link ${LINK} serves`);
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, async () => {
    for (const sub of services) sub.unsubscribe(); // out of discovery, then no more asks
    link.unsubscribe();
    await Promise.all(working); // what is being judged is answered
    await nc.drain();
  });
}
