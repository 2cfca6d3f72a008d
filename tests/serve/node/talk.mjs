// Four calls with OpenAI's SDK for Node, through a pass-through at the given URL; prints what came back as JSON.
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.argv[2], apiKey: "sk-node", maxRetries: 0 });
const messages = [];
for (let number = 0; number < 20; number++) {
  messages.push({ role: "user", content: `What is known of pier ${number}? `.repeat(10) });
  messages.push({ role: "assistant", content: `Pier ${number} was built of oak. `.repeat(10) });
}
messages.push({ role: "user", content: "Which pier came first?" });

const chat = await client.chat.completions.create({ model: "m", messages });
let streamed = "";
for await (const chunk of await client.chat.completions.create({ model: "m", messages, stream: true })) {
  streamed += chunk.choices[0].delta.content ?? "";
}
const response = await client.responses.create({ model: "m", input: messages });
let events = "";
for await (const event of await client.responses.create({ model: "m", input: messages, stream: true })) {
  if (event.type === "response.output_text.delta") events += event.delta;
}
let refusal = "";
try {
  await client.chat.completions.create({ model: "m", messages: [{ role: "user", content: "long ".repeat(4000) }] });
} catch (error) {
  refusal = `${error.constructor.name} ${error.status} ${error.code}`;
}
console.log(JSON.stringify({ answers: [chat.choices[0].message.content, streamed, response.output_text, events], refusal }));
