'use strict';
// Checks that stop and kill nodes, one after the other.

const { alone, fault, note, sleep, count, watch, stays, until, healthy } = require('./world');
const { newClient, instance, register, deregister, many, call, soon } = require('./client');

// None of 200 instances may be missing or unhealthy on any node at any moment.
async function leaderKilled() {
  const client = await newClient();
  await many(client, 'node-fleet', 20000, 200);
  await count(soon, { name: 'node-fleet' }, 200);
  await sleep(10000); // until they beat
  await alone(async () => {
    const stop = watch({ name: 'node-fleet' });
    const leader = await fault('leader');
    await fault('kill', leader);
    await call('register without the old leader', () => client.registerInstance('node-after-kill', instance(1)));
    await sleep(17000); // longer than the beat timeout
    await fault('start', leader);
    await sleep(3000);
    const { fewest, looks } = await stop();
    note(`leader ${leader} killed: at least ${fewest} healthy in ${looks} looks`);
    if (fewest < 200) throw new Error(`a list showed ${fewest} healthy instances of 200`);
    await count(soon, { name: 'node-fleet' }, 200);
  });
}

// One node after the other is stopped and started while a client goes on. No call may
// fail: this client asks each node once, so that two good ones are enough.
async function rollingRestart() {
  const client = await newClient();
  await many(client, 'node-rolling', 21000, 50);
  await count(soon, { name: 'node-rolling' }, 50);
  await alone(async () => {
    const stop = watch({ name: 'node-rolling' });
    let over = false, calls = 0, slowest = 0;
    const failures = [];
    const load = (async () => {
      for (let port = 1; !over; port++) {
        const start = Date.now();
        try {
          await client.registerInstance('node-deploy', instance(port));
          await client.deregisterInstance('node-deploy', instance(port));
        } catch (err) {
          failures.push(err);
        }
        calls += 2;
        slowest = Math.max(slowest, Date.now() - start);
        await sleep(50);
      }
    })();
    for (const node of ['n1', 'n2', 'n3']) {
      await fault('stop', node);
      await fault('start', node);
      await sleep(1000);
    }
    over = true;
    await load;
    const { fewest, looks } = await stop();
    note(`rolling restart: ${calls} calls, ${failures.length} failed, the slowest pair took ${slowest} ms; at least ${fewest} of 50 healthy in ${looks} looks`);
    if (failures.length) throw new Error(`${failures.length} of ${calls} calls failed, the first: ${failures[0].message}`);
    if (fewest < 50) throw new Error(`a list showed ${fewest} healthy instances of 50`);
    await count(soon, { name: 'node-deploy' }, 0);
  });
}

async function oneDown() {
  const client = await newClient();
  await alone(async () => {
    await fault('stop', 'n3');
    try {
      for (let port = 1; port <= 20; port++) {
        await client.registerInstance('node-two', instance(port));
        // The other node may list it a moment later than the one that took it.
        await until(soon, `instance ${port} in the list`, async () =>
          (await client.selectInstances('node-two', undefined, '', true, false)).some(h => h.port === port));
        await client.deregisterInstance('node-two', instance(port));
      }
      if (await client.getServerStatus() !== 'UP') throw new Error('not UP');
    } finally {
      await fault('start', 'n3');
    }
    await count(soon, { name: 'node-two' }, 0);
  });
}

// noMajority: the one node that is left goes on listing and refuses to write.
async function noMajority() {
  const client = await newClient();
  await many(client, 'node-alone', 1, 20);
  await count(soon, { name: 'node-alone' }, 20);
  await alone(async () => {
    await fault('stop', 'n1');
    await fault('stop', 'n2');
    try {
      const got = await client.selectInstances('node-alone', undefined, '', true, false);
      if (got.length !== 20) throw new Error(`without a majority ${got.length} of 20 are listed`);
      const start = Date.now();
      const refused = await client.registerInstance('node-refused', instance(1)).then(() => false, () => true);
      const took = Date.now() - start;
      if (!refused) throw new Error('a registration without a majority was acknowledged');
      if (took > 8000) throw new Error(`the refusal took ${took} ms`);
      await deregister(client, 'node-refused', instance(1)).catch(() => {}); // stops its beats
    } finally {
      await fault('start', 'n1&wait=no');
      await fault('start', 'n2');
      await fault('start', 'n1');
    }
    await stays(8000, { name: 'node-alone' }, 'complete', h => healthy(h) === 20);
  });
}

module.exports = [
  [1, 'leader killed under 200 beating instances', leaderKilled],
  [2, 'rolling restart while a client registers', rollingRestart],
  [3, 'one of three nodes down', oneDown],
  [4, 'without a majority: reads go on, writes fail, all returns', noMajority],
];
