'use strict';
// The cluster under test, and the list of checks: the same as package probe for Go.

const http = require('http');

const servers = (process.env.COMPAT_SERVERS || '').split(',');
const faults = process.env.COMPAT_FAULTS;
const unrest = !!process.env.COMPAT_UNREST; // the leader is being killed all the time

const sleep = ms => new Promise(resolve => setTimeout(resolve, ms));
const note = text => console.log('note ' + text);

// request sends a plain request, without the client in between.
function request(method, url) {
  return new Promise((resolve, reject) => {
    const req = http.request(url, { method, timeout: 40000 }, res => {
      let body = '';
      res.setEncoding('utf8');
      res.on('data', chunk => { body += chunk; });
      res.on('end', () => {
        if (res.statusCode === 200) resolve(body);
        else reject(new Error(`${url}: ${res.statusCode} ${body.trim()}`));
      });
    });
    req.on('timeout', () => req.destroy(new Error(`${url}: no answer`)));
    req.on('error', reject);
    req.end();
  });
}

const fault = (what, node = '') => request('POST', `${faults}/${what}?node=${node}`);

// alone runs something while nobody else does anything to the cluster.
async function alone(run) {
  await fault('hold');
  try {
    return await run();
  } finally {
    await fault('release');
  }
}

function query(service) {
  const q = new URLSearchParams({ serviceName: service.name });
  if (service.namespace) q.set('namespaceId', service.namespace);
  if (service.group) q.set('groupName', service.group);
  return q;
}

// list asks one node for a service's instances.
async function list(server, service) {
  return JSON.parse(await request('GET', `http://${server}/nacos/v1/ns/instance/list?${query(service)}`)).hosts;
}

// remove deregisters an instance behind the client's back.
async function remove(service, ip, port) {
  const q = query(service);
  q.set('ip', ip);
  q.set('port', port);
  let last;
  for (const server of servers) {
    try {
      return await request('DELETE', `http://${server}/nacos/v1/ns/instance?${q}`);
    } catch (err) {
      last = err;
    }
  }
  throw last;
}

// until polls a condition, which may throw while it does not hold yet.
async function until(within, what, cond) {
  const start = Date.now();
  let last = '';
  for (;;) {
    try {
      if (await cond()) return Date.now() - start;
    } catch (err) {
      last = `, ${err.message}`;
    }
    if (Date.now() - start > within) throw new Error(`no ${what} within ${within} ms${last}`);
    await sleep(50);
  }
}

// everywhere waits until every node's list satisfies good.
async function everywhere(within, service, what, good) {
  for (const server of servers) {
    let hosts = [];
    await until(within, `${what} on ${server}`, async () => {
      hosts = await list(server, service);
      return good(hosts);
    }).catch(err => { throw new Error(`${err.message}: ${JSON.stringify(hosts).slice(0, 500)}`); });
  }
}

const healthy = hosts => hosts.filter(h => h.healthy).length;

const count = (within, service, n) =>
  everywhere(within, service, `${n} instances, all healthy`, hosts => hosts.length === n && healthy(hosts) === n);

// stays looks at all nodes for a while and fails as soon as good is false on one.
async function stays(ms, service, what, good) {
  const start = Date.now();
  while (Date.now() - start < ms) {
    for (const server of servers) {
      let hosts;
      try {
        hosts = await list(server, service);
      } catch (err) {
        if (unrest) continue;
        throw err;
      }
      if (!good(hosts)) throw new Error(`${server} no longer ${what} after ${Date.now() - start} ms: ${JSON.stringify(hosts).slice(0, 500)}`);
    }
    await sleep(50);
  }
}

// watch looks at a service on every node that answers until the returned function is
// called, which gives the fewest healthy instances that any look showed.
function watch(service) {
  let over = false, fewest = Infinity, looks = 0;
  const gone = (async () => {
    while (!over) {
      for (const server of servers) {
        try {
          fewest = Math.min(fewest, healthy(await list(server, service)));
          looks++;
        } catch (err) {
          // a node that does not answer shows nothing
        }
      }
      await sleep(100);
    }
  })();
  return async () => { over = true; await gone; return { fewest, looks }; };
}

// runAll runs checks, [phase, name, function], phases one after the other, those below 0
// while nobody else uses the cluster, and returns how many failed.
async function runAll(checks) {
  const only = process.env.COMPAT_ONLY || '';
  let failed = 0;
  for (let phase = Math.min(...checks.map(c => c[0])); phase <= Math.max(...checks.map(c => c[0])); phase++) {
    await Promise.all(checks.filter(c => c[0] === phase && c[1].includes(only)).map(async ([, name, run]) => {
      const start = Date.now();
      try {
        await run();
        console.log(`ok ${name} (${((Date.now() - start) / 1000).toFixed(1)}s)`);
      } catch (err) {
        failed++;
        console.log(`FAIL ${name}: ${err.message.replace(/\n/g, ' ')}`);
      }
    }));
  }
  return failed;
}

module.exports = { servers, unrest, sleep, note, fault, alone, list, remove, request, until, everywhere, healthy, count, stays, watch, runAll };
