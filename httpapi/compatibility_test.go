package httpapi

import (
	"os"
	"strings"
	"testing"
)

// The page that says what is served names every route.
func TestCompatibilityPage_NamesEveryRoute(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, rt := range allRoutes() {
		path := strings.Replace(rt.path, nsPrefix+"/ops/", nsPrefix+"/operator/", 1) // one row for both
		named := false
		for _, line := range strings.Split(string(text), "\n") {
			named = named || strings.Contains(line, "`"+path+"`") &&
				(strings.Contains(line, rt.method) || strings.Contains(line, "as under"))
		}
		if !named {
			t.Errorf("no row has %s %s", rt.method, rt.path)
		}
	}
}
