// Shops at the dealer whose address is the first argument and prints what came back as one JSON object.
import { randomUUID } from "node:crypto";
import { Role } from "@a2a-js/sdk";
import { ClientFactory } from "@a2a-js/sdk/client";
import { aapError } from "./aap_error.mjs";

const [, , url, limitedUrl] = process.argv;

async function shop(address) {
  const client = await new ClientFactory().createFromUrl(address);
  const card = await client.getAgentCard();
  const uri = card.capabilities.extensions[0].uri;
  const send = async (data, extension = uri) => {
    const part = { content: { $case: "data", value: data }, mediaType: "", filename: "" };
    const message = { messageId: randomUUID(), role: Role.ROLE_USER, parts: [part], contextId: "", taskId: "", extensions: [], referenceTaskIds: [] };
    const answer = await client.sendMessage({ message, tenant: "" }, { serviceParameters: { "A2A-Extensions": extension } });
    return answer.parts[0].content.value;
  };
  const failure = async (data, extension = uri) => {
    try {
      await send(data, extension);
      return null;
    } catch (thrown) {
      return { name: thrown.constructor.name, aap: aapError(thrown) ?? null };
    }
  };
  return { card, uri, send, failure };
}

const lead = {
  type: "lead.submit.request",
  customer: { first_name: "Jordan", last_name: "Lee", email: "jordan.js@example.com" },
  source_agent: { name: "a2a-js" },
};
const { card, uri, send, failure } = await shop(url);
const search = await send({ type: "inventory.search.request", filters: { make: ["Honda"] }, pagination: { limit: 2 } });
const consent = { granted_at: new Date().toISOString(), allowed_channels: ["email"], consent_text: "Yes.", scope: ["lead_submission"] };
const consented = { ...lead, consent, idempotency_key: randomUUID() };
const limited = await shop(limitedUrl);
await limited.failure({ type: "inventory.facets.request" });
console.log(
  JSON.stringify({
    name: card.name,
    uri,
    information: await send({ type: "dealer.information.request" }),
    facets: await send({ type: "inventory.facets.request", filters: { fuel: ["bev"] } }),
    search,
    vehicle: await send({ type: "inventory.vehicle.request", vin: search.data.vehicles[0].vin }),
    receipt: await send(consented),
    replayed: await send(consented),
    validation: await failure({ type: "inventory.search.request", filters: { mkae: ["Honda"], year_min: "2022" } }),
    unconsented: await failure(lead),
    throttled: await limited.failure({ type: "inventory.facets.request" }),
    inactive: await failure({ type: "inventory.facets.request" }, "https://example.com/other"),
  }),
);
