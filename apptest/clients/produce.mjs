// produce.mjs: writes records with kafkajs, to partition 0 of a topic.
//
//   node produce.mjs BROKER TOPIC
//
// Plain ones, compressed ones, a tombstone, a transaction that is committed and
// one that is aborted. Prints the values that consumers must see, one a line.

import { CompressionTypes, Kafka, logLevel } from "kafkajs";

const [broker, topic] = process.argv.slice(2);
const kafka = new Kafka({ clientId: "produce.mjs", brokers: [broker], logLevel: logLevel.ERROR });

const message = (value) => ({ partition: 0, key: "kafkajs", value, headers: { from: "kafkajs", twice: ["a", "b"] } });
const seen = (...values) => values.forEach((v) => console.log(v));

const plain = kafka.producer({ allowAutoTopicCreation: false });
await plain.connect();
await plain.send({ topic, messages: [message("plain 1"), message("plain 2")] });
await plain.send({ topic, compression: CompressionTypes.GZIP, messages: [message("gzip 1"), message("gzip 2")] });
seen("plain 1", "plain 2", "gzip 1", "gzip 2");
await plain.send({ topic, messages: [message(null)] });
await plain.disconnect();

const careful = kafka.producer({ transactionalId: "produce.mjs", idempotent: true, maxInFlightRequests: 1 });
await careful.connect();
for (const [how, finish] of [["committed", (t) => t.commit()], ["aborted", (t) => t.abort()], ["committed later", (t) => t.commit()]]) {
  const transaction = await careful.transaction();
  await transaction.send({ topic, messages: [message(`${how} 1`), message(`${how} 2`)] });
  await finish(transaction);
  if (how !== "aborted") seen(`${how} 1`, `${how} 2`);
}
await careful.disconnect();
