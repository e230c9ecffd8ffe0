// The lines between the runner and an adapter written in JavaScript: see line.py.
import { createInterface } from "node:readline";

export class NotClaimed extends Error {}

export const answer = (text, thinking, more = {}) => ({ text, thinking, ...more });

async function play(testCase, Client) {
  const answers = [];
  try {
    const client = new Client(testCase);
    for (const step of testCase.steps) {
      if (step.resume) await client.resume();
      else if (step.keep) await client.keep(step.keep);
      else {
        try {
          for await (const one of client.ask(testCase.endpoints[step.ask], step.text)) answers.push(one);
        } catch (error) {
          if (error instanceof NotClaimed) throw error;
          answers.push({ error: `${error.name}: ${String(error.message).split("\n")[0].slice(0, 200)}` });
        }
      }
    }
  } catch (error) {
    if (error instanceof NotClaimed) return { notClaimed: error.message };
    answers.push({ error: `${error.name}: ${String(error.message).slice(0, 200)}` });
  }
  return { answers };
}

export async function serve(Client) {
  const write = process.stdout.write.bind(process.stdout);
  process.stdout.write = process.stderr.write.bind(process.stderr);
  process.on("unhandledRejection", () => {});
  for await (const line of createInterface({ input: process.stdin })) {
    write(JSON.stringify(await play(JSON.parse(line), Client)) + "\n");
  }
}

export function lastTurns(history, isQuestion, turns) {
  const asked = history.flatMap((one, at) => (isQuestion(one) ? [at] : []));
  return history.slice(asked.at(-turns));
}
