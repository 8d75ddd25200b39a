// Shops over MCP with the official TypeScript client and prints what came back as one JSON object.
//
// Standard input holds {client, url, limitedUrl, tools: {name: arguments}, unconsented, wish}. The client "sdk" is
// @modelcontextprotocol/sdk, which shakes hands; "client" is @modelcontextprotocol/client, its successor, which asks
// for the newest revision that both sides know.
import { isDeepStrictEqual } from "node:util";
import Ajv2020 from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import * as successor from "@modelcontextprotocol/client";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

let typed = "";
for await (const chunk of process.stdin) typed += chunk;
const asked = JSON.parse(typed);

const ajv = addFormats(new Ajv2020({ strict: false, allErrors: true }));

async function connected(url) {
  const about = { name: "forecourt-interop", version: "1" };
  const old = asked.client === "sdk";
  const client = old ? new Client(about) : new successor.Client(about, { versionNegotiation: { mode: "auto" } });
  const Transport = old ? StreamableHTTPClientTransport : successor.StreamableHTTPClientTransport;
  const transport = new Transport(new URL(url));
  await client.connect(transport);
  return { client, revision: transport.protocolVersion };
}

const { client, revision } = await connected(asked.url);
const { tools } = await client.listTools();
const schemas = Object.fromEntries(
  tools.map((tool) => [tool.name, { input: ajv.compile(tool.inputSchema), output: ajv.compile(tool.outputSchema) }]),
);

async function call(by, name, given) {
  const result = await by.callTool({ name, arguments: given });
  const { input, output } = schemas[name];
  return {
    isError: result.isError ?? false,
    structured: result.structuredContent,
    types: result.content.map((content) => content.type),
    textIsEqual: isDeepStrictEqual(JSON.parse(result.content[0].text), result.structuredContent),
    inputFits: input(given),
    violations: output(result.structuredContent) ? [] : output.errors,
    // A validator that takes everything would prove nothing.
    nonsenseFits: output({ type: "nonsense" }),
  };
}

async function failure(work) {
  try {
    await work();
    return null;
  } catch (thrown) {
    return { name: thrown.constructor.name, code: thrown.code, message: thrown.message };
  }
}

const called = {};
const refused = {};
for (const [name, given] of Object.entries(asked.tools)) {
  called[name] = await call(client, name, given);
  refused[name] = await call(client, name, { ...given, nonsense: 1 });
}
const texts = {};
for (const { uri } of (await client.listResources()).resources)
  texts[uri] = JSON.parse((await client.readResource({ uri })).contents[0].text);
const { prompts } = await client.listPrompts();
const prompt = await client.getPrompt({ name: prompts[0].name, arguments: { wish: asked.wish } });

const limited = (await connected(asked.limitedUrl)).client;
await call(limited, "aap_inventory_facets", {});
console.log(
  JSON.stringify({
    revision,
    instructions: client.getInstructions(),
    server: client.getServerVersion(),
    listed: tools.map((tool) => tool.name),
    called,
    refused,
    unconsented: await call(client, "aap_lead_submit", asked.unconsented),
    absent: await call(client, "aap_inventory_vehicle", { stock: "NEVER-HERE" }),
    throttled: await call(limited, "aap_inventory_facets", {}),
    unknownTool: await failure(() => client.callTool({ name: "aap_vehicle_reserve", arguments: {} })),
    resources: texts,
    prompt: prompt.messages[0].content.text,
  }),
);
await limited.close();
await client.close();
