// Package bench measures a server of Server-Sent Events from outside.
//
// It speaks sockets only and imports no other room, so that it can't share
// the server's mistakes: it has its own reader of HTTP/1.1, chunks and events
// (stream), its own idea of what an event id looks like (id), and it judges a
// stream by the sequence numbers its publisher wrote into the records
// (Payload, mark). A Client holds tens of thousands of streams on one thread;
// Floor is the server nothing can beat, a bare loop of write(2).
//
// It does not start servers or publish records: bench/harness does, with
// bench/kafkaload for Kafka, and bench/report shows what came of it.
package bench
