'use strict';
// Changes of which each must be heard by a push, with the bounds of package probe for Go.

const { request, until } = require('./world');

const pollInterval = 10000; // what clients that are pushed to are told to wait between queries
const goal = 200; // ms on an idle cluster, the change included; only the bounds below fail
const medianBound = 500, maxBound = 4000; // well below pollInterval

// pushes adds up what some nodes counted since they started: instance lists asked for by
// anybody, pushes sent, acknowledged, and those that could not be sent.
async function pushes(nodes) {
  const sum = { queries: 0, sent: 0, acked: 0, dropped: 0 };
  for (const node of nodes) {
    const text = await request('GET', `http://${node}/metrics`);
    if (!text.includes('rollcall_push_packets_total{')) throw new Error(`${node} does not count pushes`);
    for (const line of text.split('\n')) {
      const [series, value] = line.split(' ');
      if (series.startsWith('rollcall_http_requests_total{') && series.includes('method="GET"') &&
        series.includes('route="/nacos/v1/ns/instance/list"')) sum.queries += Number(value);
      else if (series === 'rollcall_push_packets_total{outcome="sent"}') sum.sent += Number(value);
      else if (series === 'rollcall_push_packets_total{outcome="acked"}') sum.acked += Number(value);
      else if (series.startsWith('rollcall_push_drops_total{')) sum.dropped += Number(value);
    }
  }
  return sum;
}

// subscribed gives those of the nodes that push a service to somebody.
async function subscribed(nodes, name) {
  const found = [];
  for (const node of nodes) {
    const body = await request('GET', `http://${node}/nacos/v1/ns/service/subscribers?serviceName=${name}&aggregation=false`);
    if (JSON.parse(body).count > 0) found.push(node);
  }
  return found;
}

// Series is a row of changes. A change beside which anybody asked for a list proves
// nothing and is left out of it.
class Series {
  constructor(nodes) {
    this.nodes = nodes; // those that may push
    this.took = [];
    this.polled = 0;
    this.acked = 0;
  }

  // step makes a change and waits for it to be heard, for longer than a push may take and
  // shorter than a poll. heard(within) resolves to the moment of the callback, or to
  // nothing when none is due: then the acknowledgement counts alone.
  async step(what, change, heard) {
    const before = await pushes(this.nodes);
    const start = performance.now();
    await change();
    const at = await heard(maxBound).catch(err => { throw new Error(`${what}: ${err.message}`); });
    let after;
    await until(maxBound, `acknowledgement after ${what}`, async () => {
      after = await pushes(this.nodes);
      return after.acked > before.acked;
    });
    if (after.dropped !== before.dropped) throw new Error(`${what}: ${after.dropped - before.dropped} pushes could not be sent`);
    this.acked += after.acked - before.acked;
    if (after.queries !== before.queries) this.polled++;
    else if (at !== undefined) this.took.push(at - start);
  }

  // verdict prints the times and throws when they are too long, or too few to prove pushes.
  verdict(what) {
    if (!this.took.length || this.took.length < this.polled) throw new Error(`${this.took.length} changes came by push and ${this.polled} beside a poll`);
    this.took.sort((a, b) => a - b);
    const median = this.took[Math.floor(this.took.length / 2)], slowest = this.took[this.took.length - 1];
    const slow = this.took.filter(t => t > goal).length;
    console.log(`figure ${what}: ${this.took.length} changes by push, ${this.acked} acknowledgements, from the call to the callback median ${median.toFixed(1)}ms, max ` +
      `${slowest.toFixed(1)}ms, ${slow} over ${goal}ms; ${this.polled} beside a poll`);
    if (median > medianBound || slowest > maxBound) throw new Error(`pushes took ${median} ms in the median and ${slowest} ms at most`);
  }
}

module.exports = { Series, subscribed, pollInterval };
