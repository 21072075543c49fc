// Command gov1 checks rollcall with the unmodified Go client of the 1.x line,
// github.com/nacos-group/nacos-sdk-go.
package main

import (
	"fmt"
	"os"

	"github.com/rollcall-io/rollcall/test/compat/probe"
)

func main() {
	s := &suite{World: probe.Open()}
	if len(os.Args) > 1 && os.Args[1] == "hold" {
		hold(s)
		return
	}
	failed := probe.RunAll([]probe.Check{
		{Phase: -3, Name: "push of each change through another node", Run: s.pushed},
		{Phase: -2, Name: "push when the last instance leaves", Run: s.lastPushed},
		{Phase: -1, Name: "push by another node when the one asked is killed", Run: s.askedKilled},
		{Name: "register, list on every node, deregister", Run: s.registerListDeregister},
		{Name: "beats keep an instance healthy beyond its timeouts", Run: s.beatsKeepAlive},
		{Name: "a killed client's instance turns unhealthy, then leaves", Run: s.killedClientLeaves},
		{Name: "select leaves out disabled, unhealthy and weightless instances", Run: s.selection},
		{Name: "select one follows the weights", Run: s.selectOne},
		{Name: "metadata with ; % + & quotes and other scripts comes back", Run: s.metadata},
		{Name: "update changes weight and metadata, and beats keep them", Run: s.update},
		{Name: "no deregistered instance comes back with a beat in flight", Run: s.noResurrection},
		{Name: "an instance removed by hand returns with its beats", Run: s.returnsAfterRemoval},
		{Name: "registered again right after deregistration, it stays", Run: s.registerAgain},
		{Name: "300 instances of one service", Run: s.threeHundred},
		{Name: "namespaces and groups are apart", Run: s.apart},
		{Name: "clusters of one service", Run: s.clusters},
		{Name: "service list with pages", Run: s.servicePages},
		{Name: "persistent instance without beats", Run: s.persistent},
		{Name: "subscription told of each change", Run: s.subscription},
		{Name: "all gone: the list kept or emptied, as configured", Run: s.allGone},
		{Phase: 1, Name: "leader killed under 200 beating instances", Run: s.leaderKilled},
		{Phase: 2, Name: "rolling restart while clients register", Run: s.rollingRestart},
		{Phase: 3, Name: "without a majority: reads go on, writes fail fast, all returns", Run: s.noMajority},
	})
	if s.Unrest {
		probe.Note("%d calls were repeated", s.retried.Load())
	}
	if failed > 0 {
		fmt.Println("note", failed, "failed")
	}
}
