// Package probe finds out whether persistent instances are alive by trying to reach
// them. It runs on the leader, for one term at a time; counters of results start at
// nothing with each, health stays as the state has it.
//
// What a probe finds enters the log only when it changes an instance's health. A
// persistent instance is never removed.
package probe
